"""Floats as little-endian bytes.

A format of floats is given by its `precision`, the binary digits of a significand: 53 (float64), 24 (float32), 11 (IEEE binary16)
or 8 (bfloat16). A float of precision p ≤ 11 has 16 bits: its sign, 16 − p bits of exponent, p − 1 digits. Values are rounded once,
from float64 to the nearest float, ties to the even one.
"""

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels.instructions import bits_of, float_of

u = np.uint64
INFINITE = 0x7FF0000000000000  # the bits of an infinite float64


@kernel
def float_bytes(precision):
    """The bytes of a float."""
    if precision == 53:
        return 8
    return 4 if precision == 24 else 2


@kernel
def half_format(precision):
    """What `to_half` and `from_half` need to know of a format of 16 bits.

    Returns:
        The digits of a float64 that are dropped; 1023 − the exponent's bias; 2^52 times the least float; the bits of infinity.
    """
    bias = (1 << (15 - precision)) - 1
    return u(53 - precision), u(1023 - bias), 2.0 ** (54 - bias - precision), u(0x7FFF) >> u(precision - 1) << u(precision - 1)


@kernel
def to_half(value, dropped, rebias, adder, infinity):
    """The bits, uint64, of the float of 16 bits nearest to `value`; those of infinity where it overflows. All NaN become one."""
    magnitude = abs(value)
    word = bits_of(magnitude)
    normal = (word + (u(1) << (dropped - u(1))) - u(1) + (word >> dropped & u(1))) >> dropped
    normal -= rebias << (u(52) - dropped)
    small = bits_of(magnitude + adder) - bits_of(adder)  # floats below the least normal one are multiples of the least one
    code = min(small if word < (rebias + u(1)) << u(52) else normal, infinity)
    code |= u(word > u(INFINITE)) << (u(51) - dropped)  # NaN
    return code | bits_of(value) >> u(63) << u(15)


@kernel
def from_half(code, dropped, rebias, adder, infinity):
    """The float64 whose bits as a float of 16 bits are `code`, uint64."""
    magnitude = code & u(0x7FFF)
    word = (magnitude << dropped) + (rebias << u(52))
    if magnitude < u(1) << (u(52) - dropped):  # zero and subnormal floats
        word = bits_of(float_of(magnitude | bits_of(adder)) - adder)
    if magnitude >= infinity:
        word = magnitude << dropped | u(INFINITE)
    return float_of(word | code >> u(15) << u(63))


@kernel
def put_floats(values, precision, out):
    """Write values (T,) float64, rounded to floats, into `out` uint8. Returns True if no finite value overflows."""
    if precision < 24:
        return put_halves(values, precision, out)
    if precision == 53:
        for j in range(values.size):
            word = bits_of(values[j])
            for i in range(8):
                out[u(8) * u(j) + u(i)] = np.uint8(word >> u(8 * i))
        return True
    endless = 0
    for j in range(values.size):
        short = np.float32(values[j])
        endless += (abs(short) == np.float32(np.inf)) & (abs(values[j]) < np.inf)
        bits = np.float32(short).view(np.uint32)
        for i in range(4):
            out[u(4) * u(j) + u(i)] = np.uint8(bits >> np.uint32(8 * i))
    return endless == 0


@kernel
def put_halves(values, precision, out):
    """`put_floats` for floats of 16 bits."""
    dropped, rebias, adder, infinity = half_format(precision)
    endless = 0
    for j in range(values.size):
        code = to_half(values[j], dropped, rebias, adder, infinity)
        endless += (code & u(0x7FFF) == infinity) & (abs(values[j]) < np.inf)
        out[u(2) * u(j)] = np.uint8(code)
        out[u(2) * u(j) + u(1)] = np.uint8(code >> u(8))
    return endless == 0


@kernel
def take_floats(data, at, precision, values):
    """Read T = values.size floats from data[at] on, which holds them."""
    if precision < 24:
        take_halves(data, at, precision, values)
        return
    if precision == 53:
        for j in range(values.size):
            word = u(0)
            for i in range(8):
                word |= u(data[u(at) + u(8) * u(j) + u(i)]) << u(8 * i)
            values[j] = float_of(word)
        return
    for j in range(values.size):
        bits = np.uint32(0)
        for i in range(4):
            bits |= np.uint32(data[u(at) + u(4) * u(j) + u(i)]) << np.uint32(8 * i)
        values[j] = np.uint32(bits).view(np.float32)


@kernel
def take_halves(data, at, precision, values):
    """`take_floats` for floats of 16 bits."""
    dropped, rebias, adder, infinity = half_format(precision)
    for j in range(values.size):
        code = u(data[u(at) + u(2) * u(j)]) | u(data[u(at) + u(2) * u(j) + u(1)]) << u(8)
        values[j] = from_half(code, dropped, rebias, adder, infinity)
