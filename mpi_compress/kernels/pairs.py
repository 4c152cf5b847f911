"""Messages of indices and values: one, or many, written or read by one call."""

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels.bits import pack_fields
from mpi_compress.kernels.floats import count_length, put_count_and_floats, take_count, take_floats
from mpi_compress.kernels.sets import read_fields


@kernel
def put_pairs(indices, values, width, nbits, start, out):
    """Write T, T floats of `nbits`, and T fields of `width` bits from out[start] on. Returns whether no finite value overflows."""
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
