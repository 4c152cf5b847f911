"""Elias' universal codes of the integers (Elias 1975): of sets of indices as gaps, and of QSGD's levels."""

import numpy as np

from mpi_compress.kernels import kernel


@kernel
def bit_length(n):
    """⌊log2 n⌋ + 1 for n ≥ 1, and 0 for 0; n uint64."""
    length = 0
    for half in (32, 16, 8, 4, 2, 1):
        if n >> np.uint64(half):
            n >>= np.uint64(half)
            length += half
    return length + 1 if n else 0


@kernel
def omega_length(n):
    """Bits of the omega code of n ≥ 1, uint64: groups n, ⌊log2 n⌋, … down to 1 in binary, and a 0."""
    length = 1
    while n > np.uint64(1):
        width = bit_length(n)
        length += width
        n = np.uint64(width - 1)
    return length


@kernel
def sparse_levels_length(levels):
    """Bits of levels (d,) int32 as omega code of the gap, sign, omega code of the size, for each that is not 0."""
    known = small_omega_lengths()
    total = 0
    before = -1
    for j in range(levels.size):
        if levels[j] != 0:
            total += _omega_length(j - before, known) + 1 + _omega_length(abs(np.int64(levels[j])), known)
            before = j
    return total


@kernel
def dense_levels_length(levels):
    """Bits of levels (d,) int32 as sign and omega code of the size + 1, for each."""
    known = small_omega_lengths()
    total = levels.size
    for level in levels:
        total += _omega_length(abs(np.int64(level)) + 1, known)
    return total


@kernel
def small_omega_lengths():
    """omega_length(n) for n = 1 … 255."""
    lengths = np.empty(256, dtype=np.uint8)
    for n in range(1, 256):
        lengths[n] = omega_length(np.uint64(n))
    return lengths


@kernel
def _omega_length(n, known):
    return np.int64(known[n]) if n < known.size else omega_length(np.uint64(n))
