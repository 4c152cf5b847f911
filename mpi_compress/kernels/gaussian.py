"""Integers by the range coder, with the chances of a Gaussian of known standard deviation; far larger integers cost more bits.

The standard deviation is in units of the integers' high parts, which are left after `low_bits` are cut off.
"""

import math

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels import range_coder as coder
from mpi_compress.kernels.adaptive import MOST_IN_A_BYTE, put_low, room, rounded, take_low
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
def put_gaussian(integers, low_bits, below):
    """Write integers (m, d) int64. Returns the bytes, and where each row's end (m,)."""
    m, d = integers.shape
    needed = room(d, 13 + low_bits // 8)  # an escape takes 89 bits at most
    out, digits = np.empty(m * needed, dtype=np.uint8), np.empty(needed, dtype=np.uint16)
    stops, stop = np.empty(m, dtype=np.int64), 0
    reach = (below.size - 2) // 2
    for i in range(m):
        low, width, at = u(0), u(coder.FULL), u(1)
        for j in range(d):
            high = rounded(integers[i, j], low_bits)
            if abs(high) <= reach:
                k = u(high + reach)
                low, width, at = coder.narrow(below[k], below[k + u(1)] - below[k], u(28), digits, low, width, at)
            else:
                low, width, at = coder.narrow(u(coder.ONE - ESCAPE), u(ESCAPE), u(28), digits, low, width, at)
                beyond = u(abs(high) - reach)
                length = bit_length(beyond)
                low, width, at = coder.put_number(length << u(1) | u(high < 0), u(7), digits, low, width, at)
                low, width, at = coder.put_number(beyond >> u(32), length - min(length, u(32)), digits, low, width, at)
                low, width, at = coder.put_number(beyond & u(0xFFFFFFFF), min(length, u(32)), digits, low, width, at)
            if low_bits > 0:
                low, width, at = put_low(integers[i, j], high, low_bits, digits, low, width, at)
        stop += coder.settle(digits, low, width, at, out[stop:])
        stops[i] = stop
    return out, stops


@kernel
def take_gaussian(data, at, ends, low_bits, below, guesses, integers):
    """Read integers (m, d) int64. Moves `at`. Returns the first row that has none before ends[i], or CORRUPT, that is −1."""
    reach = (below.size - 2) // 2
    for i in range(at.size):
        if integers.shape[1] > (ends[i] - at[i]) * MOST_IN_A_BYTE:
            return i
        code, width, place = coder.big_endian(data, u(at[i])), u(coder.FULL), u(at[i] + 8)
        for j in range(integers.shape[1]):
            if place > u(data.size) + u(8):
                return i
            part = width >> u(28)
            chance = min(code // part, u(coder.ONE - 1))
            if chance < u(coder.ONE - ESCAPE):
                k = find(chance, below, guesses)
                code, width, place = coder.shift_in(data, code - part * below[k], part * (below[k + u(1)] - below[k]), place)
                high = np.int64(k) - reach
            else:
                code, width, place = coder.shift_in(data, code - part * u(coder.ONE - ESCAPE), part * u(ESCAPE), place)
                head, code, width, place = coder.take_number(u(7), data, code, width, place)
                length = head >> u(1)
                top, code, width, place = coder.take_number(length - min(length, u(32)), data, code, width, place)
                bottom, code, width, place = coder.take_number(min(length, u(32)), data, code, width, place)
                if length + u(low_bits) > u(62):
                    return i
                high = np.int64(top << u(32) | bottom) + reach
                if head & u(1):
                    high = -high
            if low_bits > 0:
                high, code, width, place = take_low(high, low_bits, data, code, width, place)
            integers[i, j] = high
        end = coder.end_of(data, code, width, place)
        if not 0 <= end <= ends[i]:
            return i
        at[i] = end
    return np.int64(coder.CORRUPT)


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
