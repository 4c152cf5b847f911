"""Index sets as fields of one width and as bitmaps."""

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels.bits import trailing_zeros, window

u = np.uint64


@kernel
def read_fields(data, start, width, dim, indices):
    """Read T = indices.size fields of `width` bits from data[start] on. Returns whether they increase and stay below `dim`.

    `data` uint8 has 8 bytes or more, and what the fields take.
    """
    mask = (u(1) << u(width)) - u(1)
    bit = u(8) * u(start)
    after = u(0)
    right = True
    for j in range(indices.size):
        field = window(data, bit) & mask
        bit += u(width)
        right &= field >= after
        indices[j] = np.uint32(field)
        after = field + u(1)
    return right and after <= u(dim)


@kernel
def write_bitmap(indices, out):
    """Set the bits of an index set (T,) uint32 in `out` uint8, all 0 before."""
    for j in indices:
        out[j >> np.uint32(3)] |= np.uint8(1) << np.uint8(j & np.uint32(7))


@kernel
def read_bitmap(data, start, dim, indices):
    """The places of 1 among `dim` bits from data[start] on, which `data` has. Returns whether they fill `indices` exactly."""
    found = u(0)
    for byte in range((dim + 7) // 8):
        bits = u(data[u(start) + u(byte)])
        while bits:
            index = u(8) * u(byte) + trailing_zeros(bits)
            if found == u(indices.size) or index >= u(dim):
                return False
            indices[found] = np.uint32(index)
            found += u(1)
            bits &= bits - u(1)
    return found == u(indices.size)


@kernel
def disjoint(a, b):
    """Whether two increasing index sets have no index in common."""
    i, j = u(0), u(0)
    while i < u(a.size) and j < u(b.size):
        if a[i] == b[j]:
            return False
        if a[i] < b[j]:
            i += u(1)
        else:
            j += u(1)
    return True
