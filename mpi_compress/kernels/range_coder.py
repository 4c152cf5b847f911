"""A range coder (Martin 1979) on words of 64 bits: the elementary steps of an arithmetic code.

The encoder's state is `low, width, at`. A message so far is the interval [low, low + width) of numbers that begin with the digits
written, digits[1:at]; these are bytes in an array of uint16, where an addition's carry waits until `settle`. The decoder's is
`code, width, at`: how far the number that it reads lies above low, and the next byte.

A message ends with the fewest bytes that decide it whatever follows, and the decoder finds their number: a message needs no
length ahead of it, and no room for a coder's state after it.
"""

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels.bits import leading_zeros

u = np.uint64
FULL = 2**64 - 1
LEAST = 2**56  # of a width
ONE = 2**28  # a probability of 1
LEAST_CHANCE = 2**12  # of ONE, so that no outcome costs more than 16 bits
MEMORY = 4095  # outcomes after which old ones are forgotten
RATE = (2**16 / (np.arange(MEMORY + 1) + 1.5)).astype(np.int64)  # 1 / (seen + 1.5): estimates (n + ½) / (seen + 1)
CORRUPT = -1


@kernel
def narrow(first, share, shift, digits, low, width, at):
    """The part [first, first + share) of 2^shift parts of the interval."""
    part = width >> shift
    moved = low + part * first
    digits[at - u(1)] += np.uint16(moved < low)
    return shift_out(digits, moved, part * share, at)


@kernel
def shift_out(digits, low, width, at):
    """Write the digits of `low` that are settled but for a carry."""
    if width >= u(LEAST):
        return low, width, at
    for i in range(8):
        digits[at + u(i)] = np.uint16(low >> u(56 - 8 * i) & u(255))
    n = leading_zeros(width) >> u(3)
    return low << (u(8) * n), width << (u(8) * n), at + n


@kernel
def shift_in(data, code, width, at):
    """The decoder's counterpart of `shift_out`."""
    if width >= u(LEAST):
        return code, width, at
    n = leading_zeros(width) >> u(3)
    return code << (u(8) * n) | big_endian(data, at) >> (u(64) - u(8) * n), width << (u(8) * n), at + n


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
def put_number(value, nbits, digits, low, width, at):
    """Write `value` of `nbits` ≤ 32 bits as it is."""
    return narrow(value, u(1), nbits, digits, low, width, at)


@kernel
def take_number(nbits, data, code, width, at):
    """Read a number that `put_number` wrote, and the decoder's state after it."""
    part = width >> nbits
    value = min(code // part, (u(1) << nbits) - u(1))
    code, width, at = shift_in(data, code - value * part, part, at)
    return value, code, width, at


@kernel
def adapt(bit, i, chance, seen):
    """Move the estimated chance that bit i is 0 towards the outcome, by 1 / (seen + 1.5)."""
    target = np.int64(0) if bit else np.int64(ONE)
    moved = chance[i] + ((target - chance[i]) * RATE[seen[i]] >> 16)
    chance[i] = min(max(moved, LEAST_CHANCE), ONE - LEAST_CHANCE)
    seen[i] = min(seen[i] + 1, MEMORY)


@kernel
def put_bit(bit, i, chance, seen, digits, low, width, at):
    """Write a bit, whose chance to be 0 is learned in chance[i], int64, from seen[i] earlier ones."""
    split = (width >> u(28)) * u(chance[i])
    adapt(bit, i, chance, seen)
    moved = low + (split if bit else u(0))
    digits[at - u(1)] += np.uint16(moved < low)
    return shift_out(digits, moved, width - split if bit else split, at)


@kernel
def take_bit(i, chance, seen, data, code, width, at):
    """Read a bit that `put_bit` wrote, and the decoder's state after it."""
    split = (width >> u(28)) * u(chance[i])
    bit = code >= split
    adapt(bit, i, chance, seen)
    code, width, at = shift_in(data, code - split if bit else code, width - split if bit else split, at)
    return bit, code, width, at


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
def settle(digits, low, width, at, out):
    """End the message and write it into `out`, which has room. Returns its length in bytes."""
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
def end_of(data, code, width, at):
    """Where the message ends that was decoded up to this state; CORRUPT if it is cut off or does not end as `settle` ends it."""
    value = big_endian(data, at - u(8))
    nbytes, number = bytes_to_end(value - code, width)
    end = at - u(8) + nbytes
    return np.int64(end) if end <= u(data.size) and value - number <= u(FULL) >> (u(8) * nbytes) else CORRUPT
