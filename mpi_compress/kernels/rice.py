"""Golomb–Rice codes with parameter 2^k for the gaps of index sets (Golomb 1966, Rice 1979).

A gap g, counted from 0 (the indices left out between two that are in), is ⌊g / 2^k⌋ zeros, a 1, and the k low bits of g.
"""

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels.bits import CORRUPT, EMPTY, bit_length, put, put_rest, window
from mpi_compress.kernels.instructions import trailing_zeros

u = np.uint64


@kernel
def best_parameter(indices):
    """The k that makes the set (T,) uint32 shortest, searched downhill from the mean gap, and the bits that the set takes."""
    if indices.size == 0:
        return u(0), u(0)
    k = np.int64(bit_length((u(indices[indices.size - 1]) + u(1)) // u(indices.size)))
    best = set_length(indices, u(k))
    for step in (1, -1):
        while 0 <= k + step <= 31:
            bits = set_length(indices, u(k + step))
            if bits >= best:
                break
            k, best = k + step, bits
    return u(k), best


@kernel
def set_length(indices, k):
    """Bits of the set with parameter 2^k: Σ ⌊gap / 2^k⌋ + T(k + 1)."""
    total, after = u(indices.size) * (k + u(1)), u(0)
    for j in range(indices.size):
        total += (u(indices[j]) - after) >> k
        after = u(indices[j]) + u(1)
    return total


@kernel
def write_set(indices, k, out):
    """Write the set, the last byte padded by 0. Returns where it ends."""
    stream, after = EMPTY, u(0)
    mask = (u(1) << k) - u(1)
    for j in range(indices.size):
        gap = u(indices[j]) - after
        after = u(indices[j]) + u(1)
        zeros = gap >> k
        low = gap & mask
        if zeros + k < u(32):
            stream = put((u(1) | low << u(1)) << zeros, zeros + k + u(1), out, stream)
        else:
            for _ in range(zeros // u(32)):
                stream = put(u(0), u(32), out, stream)
            stream = put(u(0), zeros & u(31), out, stream)
            stream = put(u(1), u(1), out, stream)
            stream = put(low, k, out, stream)
    return put_rest(out, stream)


@kernel
def read_set(data, bit, k, dim, indices):
    """Read T = indices.size indices below `dim` from position `bit` of `data` on. Returns where they end, or CORRUPT. `data` uint8
    has 8 bytes or more, k ≤ 31."""
    end, after = u(bit), u(0)
    size = u(8) * u(data.size)
    mask = (u(1) << k) - u(1)
    for j in range(indices.size):
        word = window(data, end)
        zeros = trailing_zeros(word)
        if zeros > u(24):  # the rare long run; k more bits might not be in the word
            while word & u((1 << 32) - 1) == u(0):
                end += u(32)
                after += u(32) << k
                if end >= size or after > u(dim):
                    return CORRUPT
                word = window(data, end)
            zeros = trailing_zeros(word)
            end += zeros
            after += zeros << k
            zeros = u(0)
            word = window(data, end)
        after += zeros << k | (word >> (zeros + u(1))) & mask
        end += zeros + u(1) + k
        if after >= u(dim) or end > size:
            return CORRUPT
        indices[j] = np.uint32(after)
        after += u(1)
    return np.int64(end)
