"""Ternary digits, 17 in 27 bits (1.588 bits each; log2 3 = 1.585)."""

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels.bits import put, put_rest, window

u = np.uint64
BLOCK = 17
BLOCK_BITS = 27


@kernel
def write_signs(signs, last_bits, out):
    """Write signs (d,) int8 as −1 → 0, 0 → 1, 1 → 2, the first digit lowest; the last block takes `last_bits`."""
    held, nheld, at = u(0), u(0), u(0)
    whole = signs.size // BLOCK
    for b in range(whole):
        field = np.uint32(0)
        for i in range(BLOCK):
            field = field * np.uint32(3) + np.uint32(signs[u(b) * u(BLOCK) + u(BLOCK - 1 - i)] + 1)
        held, nheld, at = put(u(field), u(BLOCK_BITS), out, held, nheld, at)
    field = np.uint32(0)
    for j in range(signs.size - 1, whole * BLOCK - 1, -1):
        field = field * np.uint32(3) + np.uint32(signs[j] + 1)
    held, nheld, at = put(u(field), u(last_bits), out, held, nheld, at)
    put_rest(out, held, nheld, at)


@kernel
def read_signs(data, start, last_bits, signs):
    """Read signs (d,) from data[start] on. Returns whether all blocks are numbers of 17 ternary digits. `data` uint8 has 8 bytes or
    more, and what the signs take."""
    bit = u(8) * u(start)
    whole = signs.size // BLOCK
    for b in range(whole):
        field = np.uint32(window(data, bit) & u((1 << BLOCK_BITS) - 1))
        bit += u(BLOCK_BITS)
        at = u(b) * u(BLOCK)
        for i in range(BLOCK):
            rest = field // np.uint32(3)
            signs[at + u(i)] = np.int8(field - np.uint32(3) * rest) - np.int8(1)
            field = rest
        if field > np.uint32(0):
            return False
    field = np.uint32(window(data, bit) & ((u(1) << u(last_bits)) - u(1)))
    for j in range(whole * BLOCK, signs.size):
        signs[j] = np.int8(field % np.uint32(3)) - np.int8(1)
        field //= np.uint32(3)
    return field == np.uint32(0)
