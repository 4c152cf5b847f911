"""Messages of coordinates, those of all rows by one call, with the index sets in the way that a codec names.

A message has coordinates with a value each, coordinates with a sign each and one magnitude, or both: the number of either, the
values, the magnitude, the set of either, the signs.
"""

import numpy as np

from mpi_compress.kernels import adaptive, bits, by_types, elias, kernel, rice
from mpi_compress.kernels.fields import put_count
from mpi_compress.kernels.floats import float_bytes, put_floats
from mpi_compress.kernels.vectors import refuse_unequal

u = np.uint64
Way = int | tuple[int]  # a quick one is a number; the others have another type, so that kernels are compiled without them
FIXED, BITMAP, RICE = range(3)
DELTA, OMEGA, ENTROPY = (3,), (4,), (5,)
QUICK, ALL = 3, (6,)  # ways that `shortest` tries
MOST_BYTES = (4, 0, 5, 6, 6, 20)  # of an index, by its way


def room(way: Way, dim: int, float_bytes: int, valued: int, signed: int, m: int) -> int:
    """Bytes that suffice for m messages with so many coordinates."""
    set_bytes = (dim + 7) // 8 if way == BITMAP else 10
    of_index = MOST_BYTES[way if isinstance(way, int) else way[0]]
    return (valued + signed) * of_index + valued * float_bytes + signed + m * (2 * set_bytes + 30)


_by_way = by_types(error_model="numpy")


@_by_way
def room_of_digits(way, n):
    """The digits that n indices may be written by."""
    return (lambda way, n: 0) if hasattr(way, "bitwidth") else lambda way, n: adaptive.room(n, 20)


@_by_way
def put_set(way, indices, dim, digits, out):
    """Write an increasing index set (T,) uint32 below `dim`. Returns the bytes that it takes."""

    def quick(way, indices, dim, digits, out):
        if way == FIXED:
            return np.int64(bits.write_fields(indices, bits.bit_length(u(dim - 1)), out))
        if way == BITMAP:
            return np.int64(bits.write_bitmap(indices, dim, out))
        k, _ = rice.best_parameter(indices)
        out[0] = k
        return 1 + np.int64(rice.write_set(indices, k, out[1:]))

    def other(way, indices, dim, digits, out):
        if way == ENTROPY:
            return np.int64(adaptive.write_set(indices, dim, digits, out))
        return np.int64(elias.write_set(indices, way == OMEGA, out))

    return quick if hasattr(way, "bitwidth") else other


@_by_way
def take_set(way, data, at, dim, held):
    """Read an increasing index set (T,) below `dim` from data[at] on. Returns the bit where it ends; below 0: there is none."""

    def quick(way, data, at, dim, held):
        if way == BITMAP:
            return 8 * bits.read_bitmap(data, at, dim, held)
        if way == FIXED:
            return bits.read_fields(data, 8 * at, bits.bit_length(u(dim - 1)), dim, held)
        k = u(data[at])
        return rice.read_set(data, 8 * at + 8, k, dim, held) if k < u(32) else bits.CORRUPT

    def other(way, data, at, dim, held):
        if way == ENTROPY:
            return 8 * adaptive.read_set(data, at, dim, held)
        return elias.read_set(data, 8 * at, way == OMEGA, dim, held)

    return quick if hasattr(way, "bitwidth") else other


@kernel
def set_bytes(way, indices, dim, digits, out):
    """The bytes that `put_set` writes; some ways write them to know."""
    if way == FIXED:
        return (indices.size * np.int64(bits.bit_length(u(dim - 1))) + 7) // 8
    return np.int64((dim + 7) // 8) if way == BITMAP else put_set(way, indices, dim, digits, out)


@_by_way
def other_bytes(ways, way, indices, dim, digits, out):
    """`set_bytes` of a way that is not quick, where `ways` are all."""
    if hasattr(ways, "bitwidth"):
        return lambda ways, way, indices, dim, digits, out: np.int64(0)
    return lambda ways, way, indices, dim, digits, out: put_set((way,), indices, dim, digits, out)


@_by_way
def number_of(ways):
    """How many ways QUICK or ALL are."""
    return (lambda ways: ways) if hasattr(ways, "bitwidth") else lambda ways: ways[0]


@kernel
def shortest(ways, indices, ends, dim, float_bytes, best):
    """For each of m index sets (T,), those of row i before ends[i], the way of `ways`, QUICK or ALL, that takes the fewest bytes,
    the first of such ways; best (m,): 1 + the way, or 0 where all `dim` coordinates, each a float of so many bytes, take no more
    than the set and its floats. float_bytes = 0: they cannot be sent."""
    needed = max(room_of_digits(ways, indices.size), 5 * indices.size + 10)
    digits, out = np.empty(needed, dtype=np.uint16), np.empty(needed, dtype=np.uint8)
    start = 0
    for i in range(ends.size):
        held, least = indices[start : ends[i]], np.int64(2**62)
        for way in range(number_of(ways)):
            taken = set_bytes(way, held, dim, digits, out) if way < QUICK else other_bytes(ways, way, held, dim, digits, out)
            if taken < least:
                least, best[i] = taken, 1 + way
        if 0 < dim * float_bytes <= held.size * float_bytes + least:
            best[i] = 0
        start = ends[i]


@kernel
def put_messages(way, dim, precision, indices, values, ends, sign_indices, negative, magnitudes, sign_ends, out, stops):
    """Write messages (m,) into `out`, which has room, one after another; stops (m,): where each ends. Indices (T,) uint32, those of
    row i before ends[i], have values (T,), which are not sent if there are none; sign_indices (R,) before sign_ends[i] have signs
    (R,) and magnitudes (m,). Where a message has only one kind of coordinates, the ends of the others are empty.

    Returns the first row in which a finite value overflows, or −1.
    """
    digits = np.empty(room_of_digits(way, max(indices.size, sign_indices.size)), dtype=np.uint16)
    valued, signed = ends.size > 0, sign_ends.size > 0
    refuse_unequal(indices.size, ends[-1] if valued else 0)
    refuse_unequal(values.size, indices.size if values.size else 0)
    refuse_unequal(sign_indices.size, sign_ends[-1] if signed else 0)
    refuse_unequal(sign_indices.size, negative.size)
    first, sign_first, at = 0, 0, 0
    for i in range(stops.size):
        last, sign_last, right = ends[i] if valued else 0, sign_ends[i] if signed else 0, True
        if valued:
            at += put_count(last - first, out[at:])
        if signed:
            at += put_count(sign_last - sign_first, out[at:])
        if values.size:
            right &= put_floats(values[first:last], precision, out[at:])
            at += (last - first) * float_bytes(precision)
        if signed:
            right &= put_floats(magnitudes[i : i + 1], precision, out[at:])
            at += float_bytes(precision)
        if not right:
            return i
        if valued:
            at += put_set(way, indices[first:last], dim, digits, out[at:])
        if signed:
            at += put_set(way, sign_indices[sign_first:sign_last], dim, digits, out[at:])
            at += bits.write_flags(negative[sign_first:sign_last], out[at:])
        first, sign_first, stops[i] = last, sign_last, at
    return -1


@kernel
def take_sets(way, data, at, ends, dim, stops, indices):
    """Read increasing index sets (T,) below `dim`, those of row i before stops[i]. Moves `at`. Returns the first row in which there
    is none before ends[i], or −1."""
    start = 0
    for i in range(at.size):
        held = indices[start : stops[i]]
        end = take_set(way, data, at[i], dim, held)
        if end < 0 or (end + 7) // 8 > ends[i]:
            return i
        start, at[i] = stops[i], (end + 7) // 8
    return -1
