"""Integers by the range coder, with the chances of a Gaussian of known standard deviation; far larger integers cost more bits.

The standard deviation is in units of the integers' high parts, which are left after `low_bits` are cut off.
"""

import math

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels import range_coder as coder
from mpi_compress.kernels.adaptive import ROOM, put_low, rounded, take_low
from mpi_compress.kernels.bits import bit_length

u = np.uint64
REACH = 7  # standard deviations; integers beyond are written as escapes
ESCAPE = 2**8  # the share of coder.ONE for escapes: an escape costs 20 bits, where the Gaussian alone would cost 35 and more
NARROW = 16  # coder.ONE / 2^NARROW entries in the decoder's table


@kernel
def cumulative(scale):
    """coder.ONE · P(N(0, scale²) < i − reach − ½) for i = 0 … 2·reach + 1, uint64, with at least 1 for each integer."""
    reach = np.int64(math.ceil(REACH * scale))
    count = 2 * reach + 1
    below = np.empty(count + 1, dtype=np.uint64)
    share = coder.ONE - ESCAPE - count
    for i in range(count + 1):
        below[i] = u(share * 0.5 * math.erfc((reach + 0.5 - i) / (scale * math.sqrt(2.0)))) + u(i)
    below[0] = u(0)
    below[count] = u(coder.ONE - ESCAPE)
    return below


@kernel
def first_guesses(below):
    """For each run of 2^NARROW chances the last integer that begins at or before it."""
    guesses = np.empty((coder.ONE >> NARROW) + 1, dtype=np.uint32)
    i = 0
    for start in range(guesses.size):
        while i + 1 < below.size - 1 and below[i + 1] <= u(start << NARROW):
            i += 1
        guesses[start] = i
    return guesses


@kernel
def write_gaussian(integers, low_bits, below, digits, out):
    """Write integers (d,) int64. Returns the length in bytes, 0 where the digits do not suffice."""
    reach = (below.size - 2) // 2
    low, width, at = u(0), u(coder.FULL), u(1)
    for j in range(integers.size):
        if at + u(ROOM) > u(digits.size):
            return np.int64(0)
        high = rounded(integers[j], low_bits)
        if abs(high) <= reach:
            i = u(high + reach)
            low, width, at = coder.narrow(below[i], below[i + u(1)] - below[i], u(28), digits, low, width, at)
        else:
            low, width, at = coder.narrow(u(coder.ONE - ESCAPE), u(ESCAPE), u(28), digits, low, width, at)
            beyond = u(abs(high) - reach)
            length = bit_length(beyond)
            low, width, at = coder.put_number(length << u(1) | u(high < 0), u(7), digits, low, width, at)
            low, width, at = coder.put_number(beyond >> u(32), length - min(length, u(32)), digits, low, width, at)
            low, width, at = coder.put_number(beyond & u(0xFFFFFFFF), min(length, u(32)), digits, low, width, at)
        if low_bits > 0:
            low, width, at = put_low(integers[j], high, low_bits, digits, low, width, at)
    return coder.settle(digits, low, width, at, out)


@kernel
def read_gaussian(data, start, low_bits, below, guesses, integers):
    """Read integers (d,) int64 from data[start] on. Returns where they end, or CORRUPT. `data` uint8 has 8 bytes or more."""
    reach = (below.size - 2) // 2
    code, width, at = coder.big_endian(data, u(start)), u(coder.FULL), u(start + 8)
    for j in range(integers.size):
        if at > u(data.size) + u(8):
            return np.int64(coder.CORRUPT)
        part = width >> u(28)
        chance = min(code // part, u(coder.ONE - 1))
        if chance < u(coder.ONE - ESCAPE):
            i = find(chance, below, guesses)
            code, width, at = coder.shift_in(data, code - part * below[i], part * (below[i + u(1)] - below[i]), at)
            high = np.int64(i) - reach
        else:
            code, width, at = coder.shift_in(data, code - part * u(coder.ONE - ESCAPE), part * u(ESCAPE), at)
            head, code, width, at = coder.take_number(u(7), data, code, width, at)
            length = head >> u(1)
            top, code, width, at = coder.take_number(length - min(length, u(32)), data, code, width, at)
            bottom, code, width, at = coder.take_number(min(length, u(32)), data, code, width, at)
            if length + u(low_bits) > u(62):
                return np.int64(coder.CORRUPT)
            high = np.int64(top << u(32) | bottom) + reach
            if head & u(1):
                high = -high
        if low_bits > 0:
            high, code, width, at = take_low(high, low_bits, data, code, width, at)
        integers[j] = high
    return coder.end_of(data, code, width, at)


@kernel
def find(chance, below, guesses):
    """The i with below[i] ≤ chance < below[i + 1]."""
    low = u(guesses[chance >> u(NARROW)])
    high = u(guesses[(chance >> u(NARROW)) + u(1)]) + u(1)
    while low + u(1) < high:
        middle = (low + high) >> u(1)
        if below[middle] <= chance:
            low = middle
        else:
            high = middle
    return low
