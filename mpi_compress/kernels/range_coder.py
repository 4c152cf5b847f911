"""A range coder (Martin 1979) on words of 64 bits: the elementary steps of an arithmetic code.

The encoder's state is (low, width, at). A message so far is the interval [low, low + width) of numbers that begin with the digits
written, digits[1:at]; these are bytes in an array of uint16, where an addition's carry waits until `settle`. The decoder's is
(code, width, at): how far the number that it reads lies above low, and the next byte.

A function `code_…` writes where `data` are such digits, and reads where they are the bytes of a message (uint8), so that what both
ends learn is written once. It returns what was coded and the state after it.

A message ends with the fewest bytes that decide it whatever follows, and the decoder finds their number: a message needs no
length ahead of it, and no room for a coder's state after it.
"""

import numpy as np

from mpi_compress.kernels import by_types, kernel
from mpi_compress.kernels.bits import leading_zeros

u = np.uint64
FULL = 2**64 - 1
LEAST = 2**56  # of a width
ONE = 2**28  # a probability of 1
LEAST_CHANCE = 2**12  # of ONE, so that no outcome costs more than 16 bits
MEMORY = 4095  # outcomes after which old ones are forgotten
RATE = (2**16 / (np.arange(MEMORY + 1) + 1.5)).astype(np.int64)  # 1 / (seen + 1.5): estimates (n + ½) / (seen + 1)
CORRUPT = -1
BEGUN = u(0), u(FULL), u(1)  # the encoder's state before the first digit
NOTHING = u(0), u(0), u(0)  # the decoder's state in a message that is none

by_data = by_types(error_model="numpy")


def writes(data):
    """True if arrays of this type hold digits that are written."""
    return data.dtype.bitwidth == 16


@kernel
def cut(first, share, digits, state):
    """The part [first, first + share) of the interval; digits are written that are settled but for a carry."""
    low, _, at = state
    moved = low + first
    digits[at - u(1)] += np.uint16(moved < low)
    if share >= u(LEAST):
        return moved, share, at
    for i in range(8):
        digits[at + u(i)] = np.uint16(moved >> u(56 - 8 * i) & u(255))
    n = leading_zeros(share) >> u(3)
    return moved << (u(8) * n), share << (u(8) * n), at + n


@kernel
def enter(first, share, data, state):
    """The decoder's counterpart of `cut`."""
    code, _, at = state
    if share >= u(LEAST):
        return code - first, share, at
    n = leading_zeros(share) >> u(3)
    return (code - first) << (u(8) * n) | big_endian(data, at) >> (u(64) - u(8) * n), share << (u(8) * n), at + n


@kernel
def big_endian(data, at):
    """Eight bytes from data[at] on as a number, 0 beyond the end; `data` uint8 has 8 bytes or more."""
    start = min(at, u(data.size) - u(8))
    shift = u(8) * (at - start)
    if shift > u(63):
        return u(0)
    word = u(0)
    for i in range(8):
        word = word << u(8) | u(data[start + u(i)])
    return word << shift


@kernel
def begun(data, start):
    """The decoder's state before the message that begins at data[start]."""
    return big_endian(data, u(start)), u(FULL), u(start) + u(8)


@by_data
def is_over(data, state):
    """True if there is no more to read."""
    if writes(data):
        return lambda data, state: False
    return lambda data, state: state[2] > u(data.size) + u(8)


@by_data
def keep(array, i, value, data):
    """array[i] = value, where it was read."""
    if writes(data):
        return lambda array, i, value, data: None

    def read(array, i, value, data):
        array[i] = value

    return read


@by_data
def code_number(value, nbits, data, state):
    """A `value` of `nbits` ≤ 32 bits as it is."""

    def write(value, nbits, data, state):
        part = state[1] >> nbits
        return value, cut(part * value, part, data, state)

    def read(value, nbits, data, state):
        part = state[1] >> nbits
        found = min(state[0] // part, (u(1) << nbits) - u(1))
        return found, enter(found * part, part, data, state)

    return write if writes(data) else read


@kernel
def adapt(bit, i, chance, seen):
    """Move the estimated chance that bit i is 0 towards the outcome, by 1 / (seen + 1.5)."""
    target = np.int64(0) if bit else np.int64(ONE)
    moved = chance[i] + ((target - chance[i]) * RATE[seen[i]] >> 16)
    chance[i] = min(max(moved, LEAST_CHANCE), ONE - LEAST_CHANCE)
    seen[i] = min(seen[i] + 1, MEMORY)


@by_data
def code_bit(bit, i, chance, seen, data, state):
    """A bit, whose chance to be 0 is learned in chance[i], int64, from seen[i] earlier ones."""

    def write(bit, i, chance, seen, data, state):
        split = (state[1] >> u(28)) * u(chance[i])
        adapt(bit, i, chance, seen)
        return u(bit), cut(split if bit else u(0), state[1] - split if bit else split, data, state)

    def read(bit, i, chance, seen, data, state):
        split = (state[1] >> u(28)) * u(chance[i])
        found = state[0] >= split
        adapt(found, i, chance, seen)
        return u(found), enter(split if found else u(0), state[1] - split if found else split, data, state)

    return write if writes(data) else read


@kernel
def bytes_to_end(low, width):
    """The fewest bytes that, as the top bytes of a number, stay in [low, low + width) whatever follows: their number and value."""
    nbytes = u(1)
    while True:
        rest = u(FULL) >> (u(8) * nbytes)
        up = (u(0) - low) & rest
        if nbytes == u(7) or up + rest <= width - u(1):
            return nbytes, low + up
        nbytes += u(1)


@kernel
def settle(digits, state, out):
    """End the message and write it into `out`, which has room. Returns its length in bytes."""
    low, width, at = state
    nbytes, number = bytes_to_end(low, width)
    digits[at - u(1)] += np.uint16(number < low)
    for i in range(nbytes):
        digits[at] = np.uint16(number >> (u(56) - u(8) * u(i)) & u(255))
        at += u(1)
    carry = np.uint16(0)
    for i in range(np.int64(at) - 1, 0, -1):
        digit = digits[i] + carry
        out[i - 1] = np.uint8(digit & np.uint16(255))
        carry = digit >> np.uint16(8)
    return np.int64(at - u(1))


@kernel
def end_of(data, state):
    """Where the message ends that was decoded up to this state; CORRUPT if it is cut off or does not end as `settle` ends it."""
    code, width, at = state
    value = big_endian(data, at - u(8))
    nbytes, number = bytes_to_end(value - code, width)
    end = at - u(8) + nbytes
    return np.int64(end) if end <= u(data.size) and value - number <= u(FULL) >> (u(8) * nbytes) else CORRUPT
