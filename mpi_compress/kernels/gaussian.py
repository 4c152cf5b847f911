"""Integers by the range coder, with the chances of a Gaussian of known standard deviation; far larger integers cost more bits.

The standard deviation is in units of the integers' high parts, which are left after `low_bits` are cut off.
"""

import math

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels import range_coder as coder
from mpi_compress.kernels.adaptive import MOST_IN_A_BYTE, code_low, room, rounded
from mpi_compress.kernels.bits import bit_length

u = np.uint64
REACH = 7  # standard deviations; integers beyond are written as escapes
ESCAPE = 2**8  # the share of coder.ONE for escapes: an escape costs 20 bits, where the Gaussian alone would cost 35 and more
NARROW = 16  # coder.ONE / 2^NARROW entries in the decoder's table


@kernel
def cumulative(scale):
    """coder.ONE · P(N(0, scale²) < i − reach − ½) for i = 0 … 2·reach + 1, uint64, with at least 1 for each integer; escapes have
    what is left of coder.ONE, the last number."""
    reach = np.int64(math.ceil(REACH * scale))
    count = 2 * reach + 1
    below = np.empty(count + 2, dtype=np.uint64)
    share = coder.ONE - ESCAPE - count
    for i in range(count + 1):
        below[i] = u(share * 0.5 * math.erfc((reach + 0.5 - i) / (scale * math.sqrt(2.0)))) + u(i)
    below[0], below[count], below[count + 1] = u(0), u(coder.ONE - ESCAPE), u(coder.ONE)
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


@coder.by_data
def code_place(k, below, guesses, data, state):
    """The k-th part of the table."""

    def write(k, below, guesses, data, state):
        part = state[1] >> u(28)
        return k, coder.cut(part * below[k], part * (below[k + u(1)] - below[k]), data, state)

    def read(k, below, guesses, data, state):
        part = state[1] >> u(28)
        found = find(min(state[0] // part, u(coder.ONE - 1)), below, guesses)
        return found, coder.enter(part * below[found], part * (below[found + u(1)] - below[found]), data, state)

    return write if coder.writes(data) else read


@kernel
def code_gaussian(integers, low_bits, below, guesses, data, state):
    """Integers (d,) int64. Returns the state after them, or NOTHING."""
    reach = (below.size - 3) // 2
    escape = u(2 * reach + 1)
    for j in range(integers.size):
        if coder.is_over(data, state):
            return coder.NOTHING
        high = rounded(integers[j], low_bits)
        k, state = code_place(u(high + reach) if abs(high) <= reach else escape, below, guesses, data, state)
        if k == escape:
            beyond = u(abs(high) - reach)
            head, state = coder.code_number(bit_length(beyond) << u(1) | u(high < 0), u(7), data, state)
            length = head >> u(1)
            short = min(length, u(32))
            top, state = coder.code_number(beyond >> u(32), length - short, data, state)
            bottom, state = coder.code_number(beyond & u(0xFFFFFFFF), short, data, state)
            if length + u(low_bits) > u(62):
                return coder.NOTHING
            high = np.int64(top << u(32) | bottom) + reach
            if head & u(1):
                high = -high
        else:
            high = np.int64(k) - reach
        if low_bits > 0:
            high, state = code_low(integers[j], high, low_bits, data, state)
        coder.keep(integers, j, high, data)
    return state


@kernel
def put_gaussian(integers, low_bits, below, guesses):
    """Write integers (m, d) int64. Returns the bytes, and where each row's end (m,)."""
    m, d = integers.shape
    needed = room(d, 13 + low_bits // 8)  # an escape takes 89 bits at most
    out, digits = np.empty(m * needed, dtype=np.uint8), np.empty(needed, dtype=np.uint16)
    stops, stop = np.empty(m, dtype=np.int64), 0
    for i in range(m):
        stop += coder.settle(digits, code_gaussian(integers[i], low_bits, below, guesses, digits, coder.BEGUN), out[stop:])
        stops[i] = stop
    return out, stops


@kernel
def take_gaussian(data, at, ends, low_bits, below, guesses, integers):
    """Read integers (m, d) int64. Moves `at`. Returns the first row that has none before ends[i], or CORRUPT, that is −1."""
    for i in range(at.size):
        end = np.int64(coder.CORRUPT)
        if integers.shape[1] <= (ends[i] - at[i]) * MOST_IN_A_BYTE:
            end = coder.end_of(data, code_gaussian(integers[i], low_bits, below, guesses, data, coder.begun(data, at[i])))
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
