"""Elias' delta and omega codes of integers n ≥ 1 (Elias 1975), for the gaps of index sets and for QSGD's levels.

A code word is at most 43 bits for n < 2^32 and stands in the low bits of a word, its first bit lowest.
"""

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels.bits import CORRUPT, EMPTY, bit_length, put, put_rest, window
from mpi_compress.kernels.fields import put_count, take_count
from mpi_compress.kernels.instructions import trailing_zeros

u = np.uint64
DENSE, SPARSE = 0, 1  # forms of levels


def omega_word(n: int) -> tuple[int, int]:
    """`omega_code` in plain Python, for the tables."""
    code, length = 0, 1
    while n > 1:
        width = n.bit_length()
        code = code << width | (n - (1 << (width - 1))) << 1 | 1
        length += width
        n = width - 1
    return code, length


def delta_word(n: int) -> tuple[int, int]:
    """`delta_code` in plain Python, for the tables."""
    length = n.bit_length()
    zeros = length.bit_length() - 1
    code = (1 | (length - (1 << zeros)) << 1) << zeros
    return code | (n - (1 << (length - 1))) << (2 * zeros + 1), 2 * zeros + length


SHORT = 256  # numbers below it are coded by table
KEY = 10  # bits that the reader looks up at once
WORDS = np.array([[(0, 0), *map(word, range(1, SHORT))] for word in (delta_word, omega_word)], dtype=np.uint64)
FOUND = np.zeros((2, 1 << KEY, 2), dtype=np.uint64)  # by the next bits: n and the length of its word, 0 where that is longer
for row in range(2):
    for n in range(1, SHORT):
        word, length = map(int, WORDS[row, n])
        if length <= KEY:
            FOUND[row, word :: 1 << length] = n, length


@kernel
def delta_code(n):
    """The code word of 1 ≤ n < 2^32, and its length: L = ⌊log2 n⌋ + 1 as gamma code, then the L − 1 low bits of n."""
    length = bit_length(n)
    zeros = bit_length(length) - u(1)
    code = (u(1) | (length - (u(1) << zeros)) << u(1)) << zeros
    return code | (n - (u(1) << (length - u(1)))) << (u(2) * zeros + u(1)), u(2) * zeros + length


@kernel
def read_delta(word):
    """The n whose code word the low bits of `word` begin with, and its length; n = 0: none below 2^32."""
    zeros = trailing_zeros(word)
    if zeros > u(5):
        return u(0), u(0)
    word >>= zeros + u(1)
    rest = ((u(1) << zeros) | word & ((u(1) << zeros) - u(1))) - u(1)
    if rest > u(31):
        return u(0), u(0)
    return u(1) << rest | (word >> zeros) & ((u(1) << rest) - u(1)), u(2) * zeros + u(1) + rest


@kernel
def omega_code(n):
    """The code word of 1 ≤ n < 2^32, and its length: …, ⌊log2 n⌋, n in binary, each with its leading 1 first, and a 0."""
    code, length = u(0), u(1)
    while n > u(1):
        width = bit_length(n)
        code = code << width | (n - (u(1) << (width - u(1)))) << u(1) | u(1)
        length += width
        n = width - u(1)
    return code, length


@kernel
def read_omega(word):
    """The n whose code word the low bits of `word` begin with, and its length; n = 0: none below 2^32."""
    n, length = u(1), u(1)
    while word & u(1):
        if n > u(31):
            return u(0), u(0)
        rest = n
        n = u(1) << rest | (word >> u(1)) & ((u(1) << rest) - u(1))
        word >>= rest + u(1)
        length += rest + u(1)
    return n, length


@kernel
def code_of(n, omega):
    """The code word and its length."""
    if n < u(SHORT):
        return WORDS[u(omega), n, u(0)], WORDS[u(omega), n, u(1)]
    if omega:
        return omega_code(n)
    return delta_code(n)


@kernel
def read_code(word, omega):
    """The n and the length of its code word; n = 0: there is none."""
    key = word & u((1 << KEY) - 1)
    if FOUND[u(omega), key, u(0)] != u(0):
        return FOUND[u(omega), key, u(0)], FOUND[u(omega), key, u(1)]
    if omega:
        return read_omega(word)
    return read_delta(word)


@kernel
def put_long(code, length, out, stream):
    """Append a code word of up to 64 bits."""
    if length <= u(32):
        return put(code, length, out, stream)
    stream = put(code & u(0xFFFFFFFF), u(32), out, stream)
    return put(code >> u(32), length - u(32), out, stream)


@kernel
def set_length(indices, omega):
    """Bits of an increasing index set (T,) uint32 as the codes of its gaps, the first counted from −1."""
    total, before = u(0), u(0)
    for j in range(indices.size):
        index = u(indices[j]) + u(1)
        total += code_of(index - before, omega)[1]
        before = index
    return total


@kernel
def write_set(indices, omega, out):
    """Write the codes of a set's gaps. Returns where they end."""
    stream, before = EMPTY, u(0)
    for j in range(indices.size):
        index = u(indices[j]) + u(1)
        code, length = code_of(index - before, omega)
        stream = put_long(code, length, out, stream)
        before = index
    return put_rest(out, stream)


@kernel
def read_set(data, bit, omega, dim, indices):
    """Read T = indices.size indices below `dim` from position `bit` of `data` on. Returns where they end, or CORRUPT."""
    end, before = u(bit), u(0)
    for j in range(indices.size):
        gap, length = read_code(window(data, end), omega)
        before += gap
        end += length
        if gap == u(0) or before > u(dim) or end > u(8) * u(data.size):
            return CORRUPT
        indices[j] = np.uint32(before - u(1))
    return np.int64(end)


# Levels (d,) have two forms. SPARSE: for each that is not 0 the code of the gap to it, its sign, 1 if it is negative, and the code
# of its size. DENSE: for each the code of its size + 1, and its sign unless it is 0.


@kernel
def levels_lengths(levels, omega):
    """How many levels (d,) are not 0, and the bits of the sparse form and of the dense one without their signs."""
    at, count = np.empty(levels.size + 1, dtype=np.uint32), u(0)
    for j in range(levels.size):
        at[count] = j
        count += u(levels[j] != 0)
    at = at[:count]
    sparse, dense = set_length(at, omega), u(levels.size - at.size) * code_of(u(1), omega)[1]
    for j in at:
        size = u(abs(np.int64(levels[j])))
        sparse += code_of(size, omega)[1]
        dense += code_of(size + u(1), omega)[1]
    return count, sparse, dense


@kernel
def paper_bits(levels):
    """Bits (m,) of levels (m, d) in omega codes, the shorter form, in which every level of the dense one has a sign, 0 too."""
    bits = np.empty(len(levels))
    for i in range(bits.size):
        count, sparse, dense = levels_lengths(levels[i], True)
        bits[i] = min(sparse + count, dense + u(levels.shape[1]))
    return bits


@kernel
def write_levels(levels, form, omega, out):
    """Write levels (d,) in this form. Returns where they end."""
    stream, before = EMPTY, u(0)
    for j in range(levels.size):
        level = levels[j]
        size = u(abs(np.int64(level)))
        if form == DENSE:
            code, length = code_of(size + u(1), omega)
            stream = put_long(code | u(level < 0) << length, length + u(level != 0), out, stream)
        elif level:
            code, length = code_of(u(j) + u(1) - before, omega)
            stream = put_long(code, length, out, stream)
            code, length = code_of(size, omega)
            stream = put_long(u(level < 0) | code << u(1), length + u(1), out, stream)
            before = u(j) + u(1)
    return put_rest(out, stream)


@kernel
def read_levels(data, bit, form, count, omega, levels):
    """Read levels (d,) int32, all 0 before, of which `count` are written. Returns where they end, or CORRUPT."""
    end, index, size = u(bit), u(0), u(0)
    for _ in range(count):
        word = window(data, end)
        number, length = read_code(word, omega)
        if number == u(0):
            return CORRUPT
        if form == SPARSE:
            index += number
            end += length
            word = window(data, end)
            size, length = read_code(word >> u(1), omega)
            negative, length = word & u(1), length + u(1)
            if size == u(0):
                return CORRUPT
        else:
            index += u(1)
            size = number - u(1)
            negative = (word >> length) & u(1)
            length += u(size != u(0))
        end += length
        if size >= u(1) << u(31) or index > u(levels.size) or end > u(8) * u(data.size):
            return CORRUPT
        levels[index - u(1)] = -np.int32(size) if negative else np.int32(size)
    return np.int64(end)


@kernel
def put_levels(levels, omega, forms, stops):
    """Write levels (m, d), each row in the shorter form, which forms (m,) then says; the sparse one with their number ahead.
    Returns the bytes; stops (m,): where each row's end."""
    counts, stop = np.empty(stops.size, dtype=np.int64), 0
    for i in range(stops.size):
        counts[i], sparse, dense = levels_lengths(levels[i], omega)
        forms[i] = SPARSE if sparse < dense else DENSE
        ahead = 1 + (np.int64(bit_length(u(counts[i] | 1))) - 1) // 7 if sparse < dense else 0
        stop += ahead + (np.int64(min(sparse, dense)) + counts[i] + 7) // 8
        stops[i] = stop
    out, start = np.empty(stop, dtype=np.uint8), 0
    for i in range(stops.size):
        if forms[i] == SPARSE:
            start += put_count(counts[i], out[start:])
        write_levels(levels[i], forms[i], omega, out[start:])
        start = stops[i]
    return out


@kernel
def take_levels(data, at, ends, forms, omega, levels):
    """Read levels (m, d) int32, all 0 before, that `put_levels` wrote in these forms. Moves `at`. Returns the first row that has
    none before ends[i], or CORRUPT, that is −1."""
    for i in range(at.size):
        count, start = np.int64(levels.shape[1]), at[i]
        if forms[i] == SPARSE:
            count, start = take_count(data, start, ends[i], count)
        end = CORRUPT
        if 0 <= count <= 8 * (ends[i] - start):
            end = read_levels(data, 8 * start, forms[i], count, omega, levels[i])
        if end < 0 or (end + 7) // 8 > ends[i]:
            return i
        at[i] = (end + 7) // 8
    return CORRUPT
