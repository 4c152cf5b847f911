"""Losses of one sample, ℓ(y, m) for label y and margin m = a·x, with their first two derivatives in m (docs/maths.md).

A loss with a kernel is one row here. All of them stay finite for any finite margin. For the logistic loss e^−t and log(1 + e) are
straight lines of arithmetic, which the compiler applies to several numbers at once. They are less than 1 ulp from the exact value,
and have the same bits wherever floats are IEEE's: no library decides them. They are the bits that glibc 2.36 gives on processors
with fused multiply-add.
"""

import math

import numpy as np

from mpi_compress.kernels import by_types, inlined_kernel, kernel
from mpi_compress.kernels.instructions import bits_of, float_of, fma
from mpi_compress.kernels.vectors import compensated

LIMIT = 512.0  # of the exponents that `exponential` takes

_ONE_OVER_STEP = float.fromhex("0x1.71547652b82fep+7")  # 128 / log 2
_STEP_HIGH, _STEP_LOW = float.fromhex("0x1.62e42fefa0000p-8"), float.fromhex("0x1.cf79abc9e3b3ap-47")  # their sum is log 2 / 128
_ROUNDING = 1.5 * 2.0**52  # added and subtracted, it rounds to an integer
_E2, _E3, _E4, _E5 = (
    float.fromhex(c) for c in ("0x1.ffffffffffdbdp-2", "0x1.555555555543cp-3", "0x1.55555cf172b91p-5", "0x1.1111167a4d017p-7")
)
_LOG2_HIGH, _LOG2_LOW = float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")
_L1, _L2, _L3, _L4 = (
    float.fromhex(c) for c in ("0x1.5555555555593p-1", "0x1.999999997fa04p-2", "0x1.2492494229359p-2", "0x1.c71c51d8e78afp-3")
)
_L5, _L6, _L7 = (float.fromhex(c) for c in ("0x1.7466496cb03dep-3", "0x1.39a09d078c69fp-3", "0x1.2f112df3e5244p-3"))
_ROOT_LESS_ONE = float.fromhex("0x1.a827ap-2")  # about √2 − 1
_NEAR_TWO, _TINY = 2.0 - 1.5 * 2.0**-19, 2.0**-29


def _powers_of_two():
    """2^(i/128), i < 128: its bits less i·2^45 uint64, and what rounding lost of it, relative to it."""
    one = 1 << 256  # numbers with 256 binary places
    root = 2 * one
    for _ in range(7):
        root = math.isqrt(root * one)
    power, nearest, lost = one, [], []
    for _ in range(128):
        nearest.append(power / one)
        exact = int(nearest[-1] * 2.0**52) << 204
        lost.append((power - exact) / exact)
        power = power * root // one
    return np.array(nearest).view(np.uint64) - (np.arange(128, dtype=np.uint64) << np.uint64(45)), np.array(lost)


_POWERS, _LOST = _powers_of_two()


@inlined_kernel
def exponential(x):
    """e^x for −512 < x ≤ 0.

    x = (128 q + i)·log(2)/128 + r with integers q and i < 128, so e^x = 2^q · 2^(i/128) · e^r: a table and a polynomial
    (Tang, ACM Transactions on Mathematical Software 15(2), 1989; coefficients of Arm's Optimized Routines).
    """
    shifted = fma(x, _ONE_OVER_STEP, _ROUNDING)
    word = bits_of(shifted)  # its last bits are those of 128 q + i
    steps = shifted - _ROUNDING
    r = fma(steps, -_STEP_LOW, fma(steps, -_STEP_HIGH, x))
    i = word & np.uint64(127)
    power = float_of(_POWERS[i] + (word << np.uint64(45)))
    square = r * r
    less_one = fma(fma(_E3, r, _E2), square, _LOST[i] + r)
    less_one = fma(square * square, fma(r, _E5, _E4), less_one)
    return fma(power, less_one, power)


@inlined_kernel
def log_of_one_plus(e):
    """log(1 + e) for 0 ≤ e ≤ 1.

    1 + e = 2^k (1 + f) with k 0 or 1 and f about 0, and log(1 + f) is a polynomial in s = f/(2 + f) (fdlibm's s_log1p.c).
    """
    one_plus = 1.0 + e
    large = e >= _ROOT_LESS_ONE
    k = 1.0 if large else 0.0
    f = 0.5 * one_plus - 1.0 if large else e
    lost = (e - (one_plus - 1.0)) / one_plus if large else 0.0  # by rounding 1 + e
    half = 0.5 * f * f
    s = f / (2.0 + f)
    z = s * s
    z2 = z * z
    z4 = z2 * z2
    series = fma(z, _L1, z2 * fma(z, _L3, _L2))
    series = fma(z2 * z4, fma(z, _L7, _L6), fma(z4, fma(z, _L5, _L4), series))
    low = fma(k, _LOG2_LOW, lost)
    rest = half - (low + (series + half) * s)
    rest = half * fma(-2.0 / 3.0, f, 1.0) - low if _NEAR_TWO <= one_plus < 2.0 else rest
    return fma(k, _LOG2_HIGH, -(rest - f)) if e >= _TINY else fma(-(e * e), 0.5, e)


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
    """The function (loss, y, m) that is the one at this place of the row whose code is `loss`; only kernels call it."""

    def choose(loss, y, m):
        chosen = missing
        for code, functions in enumerate(ROWS):
            chosen = _or_else(code, inlined_kernel(functions[place]), inlined_kernel(chosen))
        return chosen

    return by_types(error_model="numpy", forceinline=True)(choose)


_value_and_slope = _of_row(0, missing=lambda loss, y, m: (np.nan, np.nan))
_curvature = _of_row(1, missing=lambda loss, y, m: np.nan)


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
def mean_loss(loss, labels, margins):
    """(1/N) Σ ℓ(y_i, m_i), summed with compensation."""
    total = lost = 0.0
    for i in range(labels.size):
        total, lost = compensated(total, lost, loss_and_slope(loss, labels[i], margins[i])[0])
    return (total + lost) / labels.size
