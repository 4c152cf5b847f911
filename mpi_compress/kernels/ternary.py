"""Ternary digits, 17 in 27 bits (1.588 bits each; log2 3 = 1.585)."""

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels.bits import put, put_rest, window

u = np.uint64
BLOCK = 17
BLOCK_BITS = 27


@kernel
def put_digits(signs, last_bits, out, stops):
    """Write signs (m, d) int8 as −1 → 0, 0 → 1, 1 → 2, the first digit lowest; a row's last block takes `last_bits`."""
    d, at = signs.shape[1], u(0)
    whole = d // BLOCK
    for i in range(stops.size):
        row, stream = signs[i], (u(0), u(0), at)
        for b in range(whole):
            field = np.uint32(0)
            for k in range(BLOCK):
                field = field * np.uint32(3) + np.uint32(row[u(b) * u(BLOCK) + u(BLOCK - 1 - k)] + 1)
            stream = put(u(field), u(BLOCK_BITS), out, stream)
        field = np.uint32(0)
        for j in range(d - 1, whole * BLOCK - 1, -1):
            field = field * np.uint32(3) + np.uint32(row[j] + 1)
        stream = put(u(field), u(last_bits), out, stream)
        at = put_rest(out, stream)
        stops[i] = at


@kernel
def take_digits(data, starts, last_bits, signs):
    """Read signs (m, d), which begin at data[starts]. Returns whether all blocks are numbers of 17 ternary digits. `data` has what
    the signs take, and 8 bytes more."""
    d, wrong = signs.shape[1], np.uint32(0)
    whole = d // BLOCK
    for i in range(starts.size):
        row, bit = signs[i], u(8) * u(starts[i])
        for b in range(whole):
            field = np.uint32(window(data, bit) & u((1 << BLOCK_BITS) - 1))
            bit += u(BLOCK_BITS)
            for k in range(BLOCK):
                rest = field // np.uint32(3)
                row[u(b) * u(BLOCK) + u(k)] = np.int8(field - np.uint32(3) * rest) - np.int8(1)
                field = rest
            wrong |= field
        field = np.uint32(window(data, bit) & ((u(1) << u(last_bits)) - u(1)))
        for j in range(whole * BLOCK, d):
            row[j] = np.int8(field % np.uint32(3)) - np.int8(1)
            field //= np.uint32(3)
        wrong |= field
    return wrong == np.uint32(0)
