"""Elias' delta and omega codes of integers n ≥ 1 (Elias 1975), for the gaps of index sets and for QSGD's levels.

A code word is at most 43 bits for n < 2^32 and stands in the low bits of a word, its first bit lowest.
"""

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels.bits import bit_length, put, put_rest, window
from mpi_compress.kernels.hits import keys_above
from mpi_compress.kernels.instructions import trailing_zeros

u = np.uint64
CORRUPT = -1


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
def put_long(code, length, out, held, nheld, at):
    """Append a code word of up to 64 bits."""
    if length <= u(32):
        return put(code, length, out, held, nheld, at)
    held, nheld, at = put(code & u(0xFFFFFFFF), u(32), out, held, nheld, at)
    return put(code >> u(32), length - u(32), out, held, nheld, at)


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
def size_of(level):
    """|level| of a signed integer, as uint64."""
    return u(abs(np.int64(level)))


@kernel
def levels_lengths(levels, omega):
    """The increasing indices of the levels (d,) that are not 0, and bits without their signs in two forms.

    sparse: code of the gap and code of the size for each that is not 0; dense: code of the size + 1 for each.
    """
    at = keys_above(levels, 0)
    sparse, dense = set_length(at, omega), u(levels.size - at.size) * code_of(u(1), omega)[1]
    for j in at:
        size = size_of(levels[j])
        sparse += code_of(size, omega)[1]
        dense += code_of(size + u(1), omega)[1]
    return at, sparse, dense


@kernel
def write_set(indices, levels, omega, out):
    """Write the codes of a set's gaps into `out`, of as many bytes as they need. After each, unless `levels` (0,) is empty, comes
    the sign of the level there (d,), 1 if it is negative, and the code of its size."""
    held, nheld, at, before = u(0), u(0), u(0), u(0)
    for j in range(indices.size):
        index = u(indices[j]) + u(1)
        code, length = code_of(index - before, omega)
        held, nheld, at = put_long(code, length, out, held, nheld, at)
        before = index
        if levels.size:
            level = levels[indices[j]]
            code, length = code_of(size_of(level), omega)
            held, nheld, at = put_long(u(level < 0) | code << u(1), length + u(1), out, held, nheld, at)
    put_rest(out, held, nheld, at)


@kernel
def read_set(data, bit, omega, dim, indices, levels):
    """Read T = indices.size indices below `dim` from position `bit` of `data` on, and the levels there, unless `levels` int32 (0,)
    is empty; it is (d,), all 0 before. Returns where they end, or CORRUPT."""
    end, before = u(bit), u(0)
    for j in range(indices.size):
        gap, length = read_code(window(data, end), omega)
        before += gap
        end += length
        if gap == u(0) or before > u(dim) or end > u(8) * u(data.size):
            return CORRUPT
        indices[j] = np.uint32(before - u(1))
        if levels.size:
            word = window(data, end)
            size, length = read_code(word >> u(1), omega)
            end += length + u(1)
            if size == u(0) or size >= u(1) << u(31) or end > u(8) * u(data.size):
                return CORRUPT
            levels[indices[j]] = -np.int32(size) if word & u(1) else np.int32(size)
    return np.int64(end)


@kernel
def write_dense_levels(levels, omega, out):
    """Write the dense form, with a sign after each code of a level that is not 0."""
    held, nheld, at = u(0), u(0), u(0)
    for j in range(levels.size):
        code, length = code_of(size_of(levels[j]) + u(1), omega)
        signed = u(levels[j] != 0)
        code |= u(levels[j] < 0) << length
        held, nheld, at = put_long(code, length + signed, out, held, nheld, at)
    put_rest(out, held, nheld, at)


@kernel
def read_dense_levels(data, bit, omega, levels):
    """Read all levels (d,) int32. Returns where they end, or CORRUPT."""
    end = u(bit)
    for j in range(levels.size):
        word = window(data, end)
        size, length = read_code(word, omega)
        if size == u(0) or size > u(1) << u(31) or end > u(8) * u(data.size):
            return CORRUPT
        size -= u(1)
        negative = (word >> length) & u(1)
        end += length + u(size != u(0))
        levels[j] = -np.int32(size) if negative else np.int32(size)
    return np.int64(end) if end <= u(8) * u(data.size) else CORRUPT
