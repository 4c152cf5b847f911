"""Streams of bits, least significant bit first: index sets as fields of one width, and the steps of other codes.

A stream's state is three numbers, `held, nheld, at`: up to 63 bits that are not yet written in whole bytes, their number, and the
place of the next byte. They are passed and returned, so that a compiled loop keeps them in registers.
"""

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels.instructions import leading_zeros

u = np.uint64


@kernel
def bit_length(n):
    """⌊log2 n⌋ + 1 for n ≥ 1, and 0 for 0; n uint64."""
    return u(64) - leading_zeros(n)


@kernel
def put(value, width, out, held, nheld, at):
    """Append `value` < 2^width, width ≤ 32; nheld < 32 before and after."""
    # The early return matters: with the state changed inside an `if`, Numba counts references to `out` in every call, 20 ns.
    held |= value << nheld
    nheld += width
    if nheld < u(32):
        return held, nheld, at
    out[at] = np.uint8(held)
    out[at + u(1)] = np.uint8(held >> u(8))
    out[at + u(2)] = np.uint8(held >> u(16))
    out[at + u(3)] = np.uint8(held >> u(24))
    return held >> u(32), nheld - u(32), at + u(4)


@kernel
def put_rest(out, held, nheld, at):
    """Write the bits that are held, the last byte padded by 0. Returns where they end."""
    while nheld > u(0):
        out[at] = np.uint8(held)
        at += u(1)
        held >>= u(8)
        nheld -= min(nheld, u(8))
    return at


@kernel
def window(data, bit):
    """At least 57 bits from position `bit` of the stream on, as the low bits of a word; 0 beyond the end. `data` uint8 has 8 bytes
    or more."""
    at = min(bit >> u(3), u(data.size) - u(8))
    shift = bit - at * u(8)
    if shift > u(63):
        return u(0)
    return (
        u(data[at])
        | u(data[at + u(1)]) << u(8)
        | u(data[at + u(2)]) << u(16)
        | u(data[at + u(3)]) << u(24)
        | u(data[at + u(4)]) << u(32)
        | u(data[at + u(5)]) << u(40)
        | u(data[at + u(6)]) << u(48)
        | u(data[at + u(7)]) << u(56)
    ) >> shift


@kernel
def pack_fields(fields, width, out, start):
    """Write `fields` (T,) uint32, each below 2^width, as (T·width + 7) // 8 bytes from out[start] on, the last padded by 0."""
    if width == 16:
        for j in range(fields.size):
            out[u(start) + u(2) * u(j)] = np.uint8(fields[j])
            out[u(start) + u(2) * u(j) + u(1)] = np.uint8(fields[j] >> np.uint32(8))
    else:
        held, nheld, at = u(0), u(0), u(start)
        for j in range(fields.size):
            held, nheld, at = put(u(fields[j]), u(width), out, held, nheld, at)
        put_rest(out, held, nheld, at)


@kernel
def read_fields(data, start, width, dim, indices):
    """Read T = indices.size fields of `width` bits from data[start] on. Returns whether they increase and stay below `dim`. `data`
    uint8 has 8 bytes or more, and what the fields take."""
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
def disjoint(a, b):
    """True if two increasing index sets have no index in common."""
    i, j = u(0), u(0)
    while i < u(a.size) and j < u(b.size):
        if a[i] == b[j]:
            return False
        if a[i] < b[j]:
            i += u(1)
        else:
            j += u(1)
    return True
