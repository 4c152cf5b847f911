"""Losses of one sample, ℓ(y, m) for label y and margin m = a·x, with their first two derivatives in m (docs/maths.md).

A loss with a kernel is one row here. All of them stay finite for any finite margin.
"""

import numpy as np

from mpi_compress.kernels import inlined_kernel, kernel, overload
from mpi_compress.kernels.exponential import LIMIT, exponential, log_of_one_plus

ROWS: list[tuple] = []
_LN2 = np.log(2.0)


def row(curvature=None):
    """Decorates (y, m) → ℓ(y, m) and ∂ℓ/∂m; the name becomes the row's code, which the class of the loss states as its `kernel`.

    Args:
        curvature: (y, m) → ∂²ℓ/∂m². Where ℓ has a corner, both functions take a value between those beside it.
    """

    def put(function):
        ROWS.append((function, curvature))
        return len(ROWS) - 1

    return put


@kernel
def _decay(t):
    """e^−t for t ≥ 0."""
    return exponential(-t) if t < LIMIT else np.exp(-t)


@kernel
def _logistic(y, m):
    z = y * m
    e = _decay(abs(z))
    value = (log_of_one_plus(e) if abs(z) < LIMIT else e) + max(-z, 0.0)
    return value, (-y * e if z >= 0.0 else -y) / (1.0 + e)


@kernel
def _logistic_curvature(z):
    e = _decay(abs(z))
    return e / ((1.0 + e) * (1.0 + e))


@kernel
def _sigmoid(z):
    e = _decay(abs(z))
    return (1.0 if z >= 0.0 else e) / (1.0 + e)


@row(curvature=lambda y, m: _logistic_curvature(y * m))
def LOGISTIC(y, m):
    return _logistic(y, m)


@row(curvature=lambda y, m: _logistic_curvature(y * m) / _LN2)
def LOGISTIC_BASE2(y, m):
    value, slope = _logistic(y, m)
    return value / _LN2, slope / _LN2


@row(curvature=lambda y, m: 2.0 if y * m < 1.0 else 0.0)
def SQUARED_HINGE(y, m):
    short = max(1.0 - y * m, 0.0)
    return short * short, -2.0 * y * short


@row(curvature=lambda y, m: 1.0)
def LEAST_SQUARES(y, m):
    return 0.5 * (m - y) * (m - y), m - y


@row(curvature=lambda y, m: 0.0)
def HINGE(y, m):
    short = max(1.0 - y * m, 0.0)
    return short, -y if short > 0.0 else 0.0


@row(curvature=lambda y, m: 1.0 if 0.0 < y * m < 1.0 else 0.0)
def SMOOTH_HINGE(y, m):
    short = max(1.0 - y * m, 0.0)
    return (short - 0.5, -y) if short >= 1.0 else (0.5 * short * short, -y * short)


@kernel
def _squared_sigmoid_curvature(s):
    return 2.0 * s * s * (1.0 - s) * (2.0 - 3.0 * s)


@row(curvature=lambda y, m: _squared_sigmoid_curvature(_sigmoid(-y * m)))
def SQUARED_SIGMOID(y, m):
    s = _sigmoid(-y * m)
    return s * s, -2.0 * y * s * s * (1.0 - s)


def _or_else(code, own, other):
    return lambda loss, y, m: own(y, m) if loss == code else other(loss, y, m)


def _of_row(place, missing):
    """Decorates a function (loss, y, m) that only kernels call: it becomes that function of the row whose code is `loss`."""

    def choose(loss, y, m):
        chosen = missing
        for code, functions in enumerate(ROWS):
            chosen = _or_else(code, inlined_kernel(functions[place]), inlined_kernel(chosen))
        return chosen

    return lambda function: overload(function, jit_options={"error_model": "numpy", "forceinline": True})(choose) and function


@_of_row(0, missing=lambda loss, y, m: (np.nan, np.nan))
def _value_and_slope(loss, y, m): ...


@_of_row(1, missing=lambda loss, y, m: np.nan)
def _curvature(loss, y, m): ...


@kernel
def loss_and_slope(loss, y, m):
    """ℓ(y, m) and ∂ℓ/∂m; NaN for a code without a row."""
    return _value_and_slope(loss, y, m)


@kernel
def losses_and_slopes(loss, labels, margins, values, slopes):
    """values (N,), slopes (N,): ℓ and ∂ℓ/∂m of every sample, to the bits of `loss_and_slope`. The logistic loss is computed for
    several samples at once; those with a margin beyond the LIMIT are computed again, alone."""
    at_once = loss == LOGISTIC or loss == LOGISTIC_BASE2
    alone = values.size
    if at_once:
        unit = 1.0 if loss == LOGISTIC else _LN2
        for i in range(values.size):
            z = labels[i] * margins[i]
            alone -= abs(z) < LIMIT
            e = exponential(-abs(z))
            values[i] = (log_of_one_plus(e) + max(-z, 0.0)) / unit
            slopes[i] = (-labels[i] * e if z >= 0.0 else -labels[i]) / (1.0 + e) / unit
    if alone > 0:
        for i in range(values.size):
            if not (at_once and abs(labels[i] * margins[i]) < LIMIT):
                values[i], slopes[i] = _value_and_slope(loss, labels[i], margins[i])


@kernel
def curvatures(loss, labels, margins, out):
    """out (N,): ∂²ℓ/∂m² of every sample; NaN for a code without a row."""
    for i in range(out.size):
        out[i] = _curvature(loss, labels[i], margins[i])


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
