"""Counts, and floats of 32 or 64 bits as little-endian bytes; messages of indices and floats, one or many by one call."""

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels.bits import pack_fields, read_fields

u = np.uint64


@kernel
def put_floats(values, nbits, out):
    """Write values (T,) float64, rounded to floats of `nbits`, into `out` uint8. Returns True if no finite value overflows."""
    if nbits == 64:
        words = values.view(np.uint64)
        for j in range(values.size):
            for i in range(8):
                out[u(8) * u(j) + u(i)] = np.uint8(words[j] >> u(8 * i))
        return True
    right = True
    short = np.empty(1, dtype=np.float32)
    word = short.view(np.uint32)
    for j in range(values.size):
        short[0] = np.float32(values[j])
        if abs(short[0]) == np.inf and abs(values[j]) < np.inf:
            right = False
        for i in range(4):
            out[u(4) * u(j) + u(i)] = np.uint8(word[0] >> np.uint32(8 * i))
    return right


@kernel
def shorten(values, out):
    """Round values (T,) to `out` (T,) float32. Returns True if no finite value overflows."""
    endless = 0
    for j in range(values.size):
        endless += abs(values[j]) == np.inf
    for j in range(values.size):
        out[j] = np.float32(values[j])
        endless -= abs(out[j]) == np.float32(np.inf)
    return endless == 0


@kernel
def put_count(count, out):
    """Write a count in seven-bit groups, low ones first, the top bit set on all but the last. Returns where it ends."""
    at = 0
    while count >= 128:
        out[at] = count & 127 | 128
        count >>= 7
        at += 1
    out[at] = count
    return at + 1


@kernel
def count_length(count):
    """The number of bytes that `put_count` writes."""
    at = 1
    while count >= 128:
        count >>= 7
        at += 1
    return at


@kernel
def take_count(data, at):
    """The count that `put_count` wrote at data[at], and where it ends."""
    count = shift = 0
    while data[at] >= 128:
        count |= int(data[at] & 127) << shift
        shift += 7
        at += 1
    return count | int(data[at]) << shift, at + 1


@kernel
def put_count_and_floats(values, nbits, out):
    """Write T = values.size and the values. Returns what `put_floats` returns."""
    return put_floats(values, nbits, out[put_count(values.size, out) :])


@kernel
def take_floats(data, at, nbits, values):
    """Read T = values.size floats of `nbits` from data[at] on, which holds them."""
    if nbits == 64:
        words = values.view(np.uint64)
        for j in range(values.size):
            word = u(0)
            for i in range(8):
                word |= u(data[u(at) + u(8) * u(j) + u(i)]) << u(8 * i)
            words[j] = word
        return
    short = np.empty(1, dtype=np.uint32)
    value = short.view(np.float32)
    for j in range(values.size):
        short[0] = 0
        for i in range(4):
            short[0] |= np.uint32(data[u(at) + u(4) * u(j) + u(i)]) << np.uint32(8 * i)
        values[j] = value[0]


@kernel
def put_pairs(indices, values, width, nbits, start, out):
    """Write T, T floats of `nbits`, and T fields of `width` bits from out[start] on. Returns True if no finite value overflows."""
    pack_fields(indices, width, out, start)
    return put_count_and_floats(values, nbits, out)


@kernel
def take_pairs(data, at, width, nbits, dim, indices, values):
    """Read T = values.size floats of `nbits` from data[at] on, then T fields. Returns whether these increase and stay below `dim`.

    `data` has all of them, and 8 bytes or more.
    """
    take_floats(data, at, nbits, values)
    return read_fields(data, at + values.size * nbits // 8, width, dim, indices)


@kernel
def put_rows(indices, values, ends, width, nbits):
    """The messages of m = ends.size sparse vectors, written as by `put_pairs`, one after the other.

    Returns them in an array that is 8 bytes longer, where each ends, and whether no finite value overflows.
    """
    stops = np.empty(ends.size, dtype=np.int64)
    start = stop = 0
    for i in range(ends.size):
        T = ends[i] - start
        stop += count_length(T) + T * nbits // 8 + (T * width + 7) // 8
        start, stops[i] = ends[i], stop
    out = np.zeros(stop + 8, dtype=np.uint8)
    right = True
    start = stop = 0
    for i in range(ends.size):
        T = ends[i] - start
        ahead = count_length(T) + T * nbits // 8
        right &= put_pairs(indices[start : ends[i]], values[start : ends[i]], width, nbits, ahead, out[stop : stops[i]])
        start, stop = ends[i], stops[i]
    return out, stops, right


@kernel
def take_rows(data, stops, width, nbits, dim):
    """Read what `put_rows` wrote: indices, values, where those of each vector end, and whether all indices are right."""
    ends = np.empty(stops.size, dtype=np.int64)
    at = end = 0
    for i in range(stops.size):
        T, _ = take_count(data, at)
        end += T
        at, ends[i] = stops[i], end
    indices, values = np.empty(end, dtype=np.uint32), np.empty(end)
    right = True
    at = start = 0
    for i in range(stops.size):
        _, first = take_count(data, at)
        right &= take_pairs(data, first, width, nbits, dim, indices[start : ends[i]], values[start : ends[i]])
        at, start = stops[i], ends[i]
    return indices, values, ends, right
