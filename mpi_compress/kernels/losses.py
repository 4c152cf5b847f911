"""Losses of one sample, ℓ(y, m) for label y and margin m = a·x, with their first two derivatives in m (docs/maths.md).

All of them stay finite for any finite margin.
"""

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels.exponential import LIMIT, exponential, log_of_one_plus

LOGISTIC, LOGISTIC_BASE2, SQUARED_HINGE, LEAST_SQUARES, HINGE, SMOOTH_HINGE, SQUARED_SIGMOID = CODES = range(7)
_LN2 = np.log(2.0)


@kernel
def loss_and_slope(loss, y, m):
    """ℓ(y, m) and ∂ℓ/∂m; for the hinge a subgradient, 0 at its corner. NaN for a code without a branch."""
    if loss == LOGISTIC or loss == LOGISTIC_BASE2:
        z = y * m
        near = abs(z) < LIMIT
        e = exponential(-abs(z)) if near else np.exp(-abs(z))
        value = (log_of_one_plus(e) if near else e) + max(-z, 0.0)
        slope = (-y * e if z >= 0.0 else -y) / (1.0 + e)
        if loss == LOGISTIC_BASE2:
            return value / _LN2, slope / _LN2
        return value, slope
    if loss == SQUARED_HINGE:
        short = max(1.0 - y * m, 0.0)
        return short * short, -2.0 * y * short
    if loss == HINGE:
        short = max(1.0 - y * m, 0.0)
        return short, -y if short > 0.0 else 0.0
    if loss == LEAST_SQUARES:
        return 0.5 * (m - y) * (m - y), m - y
    if loss == SMOOTH_HINGE:
        short = 1.0 - y * m
        if short >= 1.0:
            return short - 0.5, -y
        short = max(short, 0.0)
        return 0.5 * short * short, -y * short
    if loss == SQUARED_SIGMOID:
        z = abs(y * m)
        e = exponential(-z) if z < LIMIT else np.exp(-z)
        s = (e if y * m >= 0.0 else 1.0) / (1.0 + e)  # σ(−y m)
        return s * s, -2.0 * y * s * s * (1.0 - s)
    return np.nan, np.nan


@kernel
def losses_and_slopes(loss, labels, margins, values, slopes):
    """values (N,), slopes (N,): ℓ and ∂ℓ/∂m of every sample, to the bits of `loss_and_slope`.

    The logistic loss is computed for several samples at once; those with a margin beyond the LIMIT are computed again, alone.
    """
    if loss == LOGISTIC or loss == LOGISTIC_BASE2:
        unit = 1.0 if loss == LOGISTIC else _LN2
        far = 0
        for i in range(values.size):
            z = labels[i] * margins[i]
            far += not abs(z) < LIMIT
            e = exponential(-abs(z))
            values[i] = (log_of_one_plus(e) + max(-z, 0.0)) / unit
            slopes[i] = (-labels[i] * e if z >= 0.0 else -labels[i]) / (1.0 + e) / unit
        if far > 0:
            for i in range(values.size):
                if not abs(labels[i] * margins[i]) < LIMIT:
                    values[i], slopes[i] = loss_and_slope(loss, labels[i], margins[i])
    else:
        for i in range(values.size):
            values[i], slopes[i] = loss_and_slope(loss, labels[i], margins[i])


@kernel
def curvatures(loss, labels, margins, out):
    """out (N,): ∂²ℓ/∂m² of every sample; for the hinges a generalised second derivative."""
    for i in range(out.size):
        z = labels[i] * margins[i]
        if loss == LOGISTIC or loss == LOGISTIC_BASE2:
            e = np.exp(-abs(z))
            out[i] = e / ((1.0 + e) * (1.0 + e))
            if loss == LOGISTIC_BASE2:
                out[i] /= _LN2
        elif loss == SQUARED_HINGE:
            out[i] = 2.0 if z < 1.0 else 0.0
        elif loss == LEAST_SQUARES:
            out[i] = 1.0
        elif loss == SMOOTH_HINGE:
            out[i] = 1.0 if 0.0 < z < 1.0 else 0.0
        elif loss == SQUARED_SIGMOID:
            e = np.exp(-abs(z))
            s = (e if z >= 0.0 else 1.0) / (1.0 + e)
            out[i] = 2.0 * s * s * (1.0 - s) * (2.0 - 3.0 * s)
        else:
            out[i] = 0.0 if loss == HINGE else np.nan


@kernel
def mean_loss_and_accuracy(loss, labels, margins):
    """(1/N) Σ ℓ(y_i, m_i), summed with compensation, and the share of samples that are classified correctly: +1 where m > 0."""
    total, lost, right = 0.0, 0.0, 0
    for i in range(labels.size):
        value, _ = loss_and_slope(loss, labels[i], margins[i])
        sum_ = total + value
        lost += (total - sum_) + value if total >= value else (value - sum_) + total
        total = sum_
        right += (margins[i] > 0.0) == (labels[i] > 0.0)
    return (total + lost) / labels.size, right / labels.size
