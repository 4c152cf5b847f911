"""Index sets and integers by the range coder, with chances that both ends learn from what was coded before.

A number n ≥ 1 is coded as its bit length, a path down a binary tree, and the bits below the leading one: three with learned
chances, the others as they are. Every node of a tree has its own chance in `chance` int64, and the number of outcomes `seen` there.

Encoders write digits into an array of scratch, and then bytes; both have `room`.
"""

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels import range_coder as coder
from mpi_compress.kernels.bits import bit_length
from mpi_compress.kernels.fields import of_row

u = np.uint64
LEARNED = 3  # bits below the leading one
TREE = 32  # nodes of a tree of bit lengths 1 … 32
BITS = 8 * 33  # nodes of the trees of learned bits, one for each bit length
PRIOR = 24  # outcomes that a chance computed beforehand counts for


@kernel
def code_size(n, depth, tree, bits, chance, seen, data, state):
    """A number n ≥ 1 of a bit length ≤ 2^depth; its trees begin at chance[tree] and chance[bits]."""
    length, node = bit_length(n) - u(1), u(1)
    for i in range(depth):
        bit, state = coder.code_bit(length >> u(depth - 1 - i) & u(1), tree + node, chance, seen, data, state)
        node = u(2) * node + bit
    left = node - (u(1) << u(depth))
    bits += u(8) * (left + u(1))
    node = u(1)
    for _ in range(min(left, u(LEARNED))):
        left -= u(1)
        bit, state = coder.code_bit(n >> left & u(1), bits + node, chance, seen, data, state)
        node = u(2) * node + bit
    if left > u(0):
        rest, state = coder.code_number(n & ((u(1) << left) - u(1)), left, data, state)
        node = node << left | rest
    return node, state


# Index sets are coded as gaps, in the context of the gap before: short, usual or long.


@kernel
def expected_gaps(count, dim):
    """The initial `chance` and `seen`: those of geometric gaps with mean d / T, as in a uniformly random set.

    The bits of a geometric variable are independent: bit i is 0 with chance 1 / (1 + θ^(2^i)), θ = 1 − T / d.

    Returns:
        chance, seen, the trees' depth, and the bit length of a usual gap.
    """
    chance = np.empty(3 * TREE + BITS, dtype=np.int64)
    seen = np.empty(3 * TREE + BITS, dtype=np.int64)
    seen[:] = PRIOR
    depth = bit_length(bit_length(u(dim)) - u(1))
    decay = np.log1p(-count / dim)
    leaves = 1 << depth
    mass = np.empty(2 * leaves)
    for n in range(leaves):
        mass[leaves + n] = np.exp(decay * (2.0**n - 1)) - np.exp(decay * (2.0 ** (n + 1) - 1)) + 1e-5
    for node in range(leaves - 1, 0, -1):
        mass[node] = mass[2 * node] + mass[2 * node + 1]
    for node in range(1, leaves):
        for context in range(3):
            chance[TREE * context + node] = clamped(mass[2 * node] / mass[node])
    for length in range(2, 33):
        for i in range(min(length - 1, LEARNED)):
            share = clamped(1 / (1 + np.exp(decay * 2.0 ** (length - 2 - i))))
            for node in range(1 << i, 2 << i):
                chance[3 * TREE + 8 * length + node] = share
    return chance, seen, depth, bit_length(u(dim // count))


@kernel
def clamped(chance):
    return min(max(np.int64(chance * coder.ONE), coder.LEAST_CHANCE), coder.ONE - coder.LEAST_CHANCE)


@kernel
def gap_context(length, usual):
    if length + u(2) < usual:
        return u(0)
    return u(TREE) if length <= usual else u(2 * TREE)


@kernel
def room(count, each):
    """Digits, and bytes, for so many outcomes of at most `each` bytes: no learned chance costs more than two bytes."""
    return count * each + 64


@kernel
def code_set(indices, dim, data, state):
    """Increasing indices (T,) below `dim`, T from 1 to dim − 1. Returns the state after them, or NOTHING."""
    chance, seen, depth, usual = expected_gaps(indices.size, dim)
    context, before = u(TREE), u(0)
    for j in range(indices.size):
        gap, state = code_size(u(indices[j]) + u(1) - before, depth, context, u(3 * TREE), chance, seen, data, state)
        before += gap
        if before > u(dim) or coder.is_over(data, state):
            return coder.NOTHING
        coder.keep(indices, j, np.uint32(before - u(1)), data)
        context = gap_context(bit_length(gap), usual)
    return state


@kernel
def write_set(indices, dim, digits, out):
    """Write an increasing index set (T,) uint32, in no bytes where it is empty or has all `dim`. Returns its length in bytes."""
    if indices.size == 0 or indices.size == dim:
        return np.int64(0)
    return coder.settle(digits, code_set(indices, dim, digits, coder.BEGUN), out)


@kernel
def read_set(data, start, dim, indices):
    """Read T = indices.size ≤ dim indices from data[start] on. Returns where they end, or CORRUPT. `data` uint8 has 8 bytes or
    more."""
    if indices.size == 0 or indices.size == dim:
        for j in range(indices.size):
            indices[j] = j
        return np.int64(start)
    return coder.end_of(data, code_set(indices, dim, data, coder.begun(data, start)))


# Integers are coded as zero or not, sign and size, in the context of the sizes of the two before.

CONTEXTS = 34
SIGN = CONTEXTS
SIZES = CONTEXTS + 1
SIZE_BITS = SIZES + TREE * CONTEXTS
PLAIN = 31  # bits of a magnitude with learned chances; those below are sent as they are
_ANY = np.int64(2**63 - 1)
MOST_IN_A_BYTE = 2**19  # an outcome costs 2⁻¹⁶ bits or more: its chance is up to 1 − 2⁻¹⁶


@kernel
def rounded(value, low_bits):
    """value / 2^low_bits to the nearest integer, ties upwards."""
    return (value + (np.int64(1) << np.int64(low_bits) >> np.int64(1))) >> np.int64(low_bits)


@kernel
def longest(integers, low_bits):
    """The bit length of the largest rounded magnitude."""
    most = np.int64(0)
    for j in range(integers.size):
        most = max(most, abs(rounded(np.int64(integers[j]), low_bits)))
    return np.int64(bit_length(u(most)))


@kernel
def split(nbits):
    """Low bits to send as they are of integers of that many bits, and the bit length of what is above them, rounding included."""
    if nbits <= PLAIN:
        return np.int64(0), nbits
    return nbits - PLAIN, np.int64(PLAIN + 1)


@kernel
def most_bytes(nbits):
    """The most bytes that an integer of that many bits takes: two for each learned outcome, and what is sent as it is."""
    low_bits, length = split(nbits)
    return 2 * (5 + np.int64(bit_length(u(length)))) + (low_bits + length) // 8 + 1


@kernel
def forget(length, chance, seen):
    """Begin with even chances where integers of at most `length` bits can come. Returns the depth of the trees of their lengths."""
    depth = np.int64(bit_length(u(length - 1)))
    leaves = 1 << depth
    for i in range(SIZES):
        chance[i], seen[i] = coder.ONE // 2, 0
    for context in range(min(length + 2, CONTEXTS)):
        for i in range(SIZES + TREE * context, SIZES + TREE * context + leaves):
            chance[i], seen[i] = coder.ONE // 2, 0
    for i in range(SIZE_BITS, SIZE_BITS + 8 * (leaves + 1)):
        chance[i], seen[i] = coder.ONE // 2, 0
    return depth


@kernel
def code_integers(integers, nbits, largest, chance, seen, data, state):
    """Integers (d,), up to `largest` and of up to so many bits. Returns the state after them, or NOTHING."""
    low_bits, length = split(nbits)
    depth = forget(length, chance, seen)
    one, two = u(0), u(0)
    for j in range(integers.size):
        if coder.is_over(data, state):
            return coder.NOTHING
        high = rounded(np.int64(integers[j]), low_bits)
        context, size, value = min(bit_length(one + two), u(CONTEXTS - 1)), u(abs(high)), np.int64(0)
        some, state = coder.code_bit(size != u(0), context, chance, seen, data, state)
        if some:
            negative, state = coder.code_bit(high < 0, u(SIGN), chance, seen, data, state)
            size, state = code_size(size, depth, u(SIZES) + u(TREE) * context, u(SIZE_BITS), chance, seen, data, state)
            value = -np.int64(size) if negative else np.int64(size)
        one, two = u(abs(value)), one
        if low_bits > 0:
            value, state = code_low(integers[j], value, low_bits, data, state)
        if bit_length(one) > u(length) or abs(value) > largest:
            return coder.NOTHING
        coder.keep(integers, j, value, data)
    return state


@kernel
def put_integers(integers):
    """Write integers (m, d), each row as a byte for the bit length n of its largest magnitude, then the integers, unless all are 0.
    The n − 31 lowest bits, where n is more, are sent as they are. Returns the bytes, and where each row's end (m,)."""
    m, d = integers.shape
    stops, needed, in_all = np.empty(m, dtype=np.int64), 0, m
    for i in range(m):
        stops[i] = longest(integers[i], 0)
        each = room(d, most_bytes(stops[i])) if stops[i] else 0
        needed, in_all = max(needed, each), in_all + each
    out, digits = np.empty(in_all + 8, dtype=np.uint8), np.empty(needed, dtype=np.uint16)
    chance, seen = np.empty(SIZE_BITS + BITS, dtype=np.int64), np.empty(SIZE_BITS + BITS, dtype=np.int64)
    stop = 0
    for i in range(m):
        nbits, out[stop] = stops[i], stops[i]
        stop += 1
        if nbits:
            state = code_integers(integers[i], nbits, _ANY, chance, seen, digits, coder.BEGUN)
            stop += coder.settle(digits, state, out[stop:])
        stops[i] = stop
    return out, stops


@kernel
def take_integers(data, at, ends, most, integers):
    """Read integers (m, d), all 0 before, up to most (m,) or (1,) in size, that `put_integers` wrote. Moves `at`. Returns the first
    row that has none before ends[i], or CORRUPT, that is −1."""
    chance, seen = np.empty(SIZE_BITS + BITS, dtype=np.int64), np.empty(SIZE_BITS + BITS, dtype=np.int64)
    for i in range(at.size):
        largest = of_row(most, i)
        if at[i] >= ends[i] or data[at[i]] > bit_length(u(largest)):
            return i
        nbits, at[i] = np.int64(data[at[i]]), at[i] + 1
        if nbits == 0:
            continue
        end = np.int64(coder.CORRUPT)
        if integers.shape[1] <= (ends[i] - at[i]) * MOST_IN_A_BYTE:
            end = coder.end_of(data, code_integers(integers[i], nbits, largest, chance, seen, data, coder.begun(data, at[i])))
        if not 0 <= end <= ends[i]:
            return i
        at[i] = end
    return np.int64(coder.CORRUPT)


@kernel
def code_low(value, high, low_bits, data, state):
    """The low bits of a value, which `rounded` cut off, as they are; returns the value, high part and all."""
    base = (high << np.int64(low_bits)) - (np.int64(1) << np.int64(low_bits) >> np.int64(1))
    rest, top = u(np.int64(value) - base), u(0)
    if low_bits > 32:
        top, state = coder.code_number(rest >> u(32), u(low_bits - 32), data, state)
        low_bits = 32
    rest, state = coder.code_number(rest & ((u(1) << u(low_bits)) - u(1)), u(low_bits), data, state)
    return base + np.int64(top << u(32) | rest), state
