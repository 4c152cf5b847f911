"""Philox4x64-10, the generator behind `streams.Streams` (Salmon, Moraes, Dror, Shaw 2011), at the addresses of many streams."""

import numpy as np

from mpi_compress.kernels import inlined_kernel, kernel
from mpi_compress.kernels.instructions import high_product

u = np.uint64
_ROUNDS = 10
_FACTORS = u(0xD2E7470EE14C6C93), u(0xCA5A826395121157)
_STEPS = u(0x9E3779B97F4A7C15), u(0xBB67AE8584CAA73B)  # of the key, from one round to the next


@inlined_kernel
def _block(block, k, who, role, first, second):
    """Four words: the block of a stream's counter under a key of two words."""
    a, b, c, d = block, k, who, role
    for _ in range(_ROUNDS):
        b, d = high_product(_FACTORS[1], c) ^ b ^ first, high_product(_FACTORS[0], a) ^ d ^ second
        a, b, c, d = b, _FACTORS[1] * c, d, _FACTORS[0] * a
        first += _STEPS[0]
        second += _STEPS[1]
    return a, b, c, d


@kernel
def words(key, role, who, k, taken, rows, counts):
    """The next counts[i] words of the stream (role, who[rows[i]], k), for all i, one stream after another. Of each stream so many
    words are `taken` already, to which these are added."""
    out, begun = np.empty(counts.sum(), dtype=np.uint64), 0
    for i in range(rows.size):
        row, end = rows[i], begun + counts[i]
        at, block = begun - taken[row] % 4, u(taken[row] // 4)
        while at < end:
            block += u(1)  # the first block of a stream is number 1, as NumPy counts
            for word in _block(block, u(k), u(who[row]), u(role), key[0], key[1]):
                if begun <= at < end:
                    out[at] = word
                at += 1
        taken[row] += counts[i]
        begun = end
    return out
