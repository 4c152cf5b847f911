"""Packing unsigned fields of one width into bytes, least significant bit first."""

import numpy as np

from mpi_compress.kernels import kernel


@kernel
def pack_fields(fields, width, out):
    """Write `fields` (T,) uint32, each below 2^width, into `out` ((T·width + 7) // 8,) uint8; the last byte is padded by 0."""
    u = np.uint64
    held, nheld, at = u(0), u(0), u(0)
    for field in fields:
        held |= u(field) << nheld
        nheld += u(width)
        while nheld >= u(8):
            out[at] = np.uint8(held & u(255))
            at += u(1)
            held >>= u(8)
            nheld -= u(8)
    if nheld:
        out[at] = np.uint8(held)


@kernel
def unpack_fields(data, width, out):
    """Read T = out.size fields of `width` ≤ 32 bits from `data` uint8, which holds at least (T·width + 7) // 8 bytes."""
    u = np.uint64
    held, nheld, at = u(0), u(0), u(0)
    mask = (u(1) << u(width)) - u(1)
    for j in range(out.size):
        while nheld < u(width):
            held |= u(data[at]) << nheld
            at += u(1)
            nheld += u(8)
        out[j] = np.uint32(held & mask)
        held >>= u(width)
        nheld -= u(width)


@kernel
def strictly_increasing_below(indices, dim):
    """Whether `indices` (T,) uint32 could be an index set of a vector with `dim` coordinates."""
    before = np.int64(-1)
    for j in indices:
        if np.int64(j) <= before or np.int64(j) >= dim:
            return False
        before = np.int64(j)
    return True
