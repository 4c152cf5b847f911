"""Streams of bits, least significant bit first: index sets as fields of one width, and the steps of other codes.

A stream is three numbers, (held, nheld, at): up to 63 bits that are not yet written in whole bytes, their number, and the place of
the next byte. It is passed and returned, so that a compiled loop keeps it in registers.
"""

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels.instructions import leading_zeros, trailing_zeros

u = np.uint64
CORRUPT = -1
EMPTY = u(0), u(0), u(0)


@kernel
def bit_length(n):
    """⌊log2 n⌋ + 1 for n ≥ 1, and 0 for 0; n uint64."""
    return u(64) - leading_zeros(n)


@kernel
def put(value, width, out, stream):
    """Append `value` < 2^width, width ≤ 32; nheld < 32 before and after."""
    # The early return matters: with the state changed inside an `if`, Numba counts references to `out` in every call, 20 ns.
    held, nheld, at = stream
    held |= value << nheld
    nheld += width
    if nheld < u(32):
        return held, nheld, at
    for i in range(4):
        out[at + u(i)] = np.uint8(held >> u(8 * i))
    return held >> u(32), nheld - u(32), at + u(4)


@kernel
def put_rest(out, stream):
    """Write the bits that are held, the last byte padded by 0. Returns where they end."""
    held, nheld, at = stream
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
def write_fields(fields, width, out):
    """Write `fields` (T,) uint32, each below 2^width, the last byte padded by 0. Returns where they end."""
    if width == 16:
        for j in range(fields.size):
            out[u(2) * u(j)] = np.uint8(fields[j])
            out[u(2) * u(j) + u(1)] = np.uint8(fields[j] >> np.uint32(8))
        return u(2 * fields.size)
    stream = EMPTY
    for j in range(fields.size):
        stream = put(u(fields[j]), u(width), out, stream)
    return put_rest(out, stream)


@kernel
def read_fields(data, bit, width, dim, indices):
    """Read T = indices.size fields of `width` bits from position `bit` on. Returns where they end, or CORRUPT unless they increase
    and stay below `dim`. `data` uint8 has 8 bytes or more."""
    mask = (u(1) << u(width)) - u(1)
    end = u(bit)
    after = u(0)
    right = True
    for j in range(indices.size):
        field = window(data, end) & mask
        end += u(width)
        right &= field >= after
        indices[j] = np.uint32(field)
        after = field + u(1)
    return np.int64(end) if right and after <= u(dim) else CORRUPT


@kernel
def write_flags(flags, out):
    """Write flags (T,) as bits, the last byte padded by 0. Returns the bytes that they take."""
    whole = flags.size // 8
    for i in range(whole):
        word = u(0)
        for j in range(8):
            word |= u(flags[u(8) * u(i) + u(j)]) << u(8 * j)
        out[i] = np.uint8((word * u(0x0102040810204080)) >> u(56))  # bit 0 of each byte, side by side
    if flags.size % 8:
        out[whole] = 0
        for j in range(flags.size % 8):
            out[whole] |= np.uint8(flags[8 * whole + j]) << np.uint8(j)
        whole += 1
    return whole


@kernel
def read_flags(data, start, flags):
    """Read flags (T,), which begin at data[start] and are there. Returns where they end."""
    for i in range(flags.size // 8):
        byte = data[u(start) + u(i)]
        for j in range(8):
            flags[u(8) * u(i) + u(j)] = byte >> np.uint8(j) & np.uint8(1) != 0
    for j in range(flags.size // 8 * 8, flags.size):
        flags[j] = data[start + j // 8] >> np.uint8(j % 8) & np.uint8(1) != 0
    return start + (flags.size + 7) // 8


@kernel
def write_bitmap(indices, dim, out):
    """Write an increasing index set (T,) as `dim` bits, 1 for each index that is in it. Returns where they end."""
    size = (dim + 7) // 8
    out[:size] = 0
    for index in indices:
        out[index >> np.uint32(3)] |= np.uint8(1) << np.uint8(index & np.uint32(7))
    return size


@kernel
def read_bitmap(data, start, dim, indices):
    """Read a set of T = indices.size indices below `dim` from data[start] on. Returns where it ends, or CORRUPT."""
    end, n = start + (dim + 7) // 8, 0
    if end > data.size:
        return CORRUPT
    for at in range(start, end):
        byte = u(data[at])
        while byte:
            index = 8 * (at - start) + trailing_zeros(byte)
            if n == indices.size or index >= dim:
                return CORRUPT
            indices[n] = index
            n += 1
            byte &= byte - u(1)
    return end if n == indices.size else CORRUPT


@kernel
def shared_index(a, a_ends, b, b_ends):
    """The first row in which two increasing index sets, those of a row before its end, have an index in common; or CORRUPT."""
    i = j = 0
    for row in range(a_ends.size):
        while i < a_ends[row] and j < b_ends[row]:
            if a[i] == b[j]:
                return row
            if a[i] < b[j]:
                i += 1
            else:
                j += 1
        i, j = a_ends[row], b_ends[row]
    return CORRUPT
