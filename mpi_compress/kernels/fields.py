"""Fields of messages, those of all rows by one call.

A field is `out` uint8, the bytes of all rows one after another, and `stops` (m,), where each row's end. A reader has the bytes
`data` of all messages and at least 8 more, for each row the place `at` (m,) of what comes next, and `ends` (m,) of the messages.
Kernels that read move `at`. They return the first row that has no such field, or NONE, and read no byte beyond `data`.

What rows may have each or all alike, such as a width, is an array (m,) or (1,).
"""

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels.bits import put, put_rest, read_flags, window, write_flags
from mpi_compress.kernels.floats import float_bytes, take_floats

u = np.uint64
NONE = -1


@kernel
def of_row(numbers, i):
    """The number of row i."""
    return numbers[min(i, numbers.size - 1)]


@kernel
def join(fields, ends_of, out, stops):
    """Write each row's bytes of these fields one after the other; two tuples: the fields' bytes, and where their rows end."""
    at = u(0)
    for i in range(stops.size):
        for f in range(len(fields)):
            field, start = fields[f], u(ends_of[f][i - 1] if i else 0)
            size = u(ends_of[f][i]) - start
            for j in range(size):
                out[at + j] = field[start + j]
            at += size
        stops[i] = at


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
def put_counts(numbers, out, stops):
    """Write counts (m,)."""
    at = 0
    for i in range(numbers.size):
        at += put_count(numbers[i], out[at:])
        stops[i] = at


@kernel
def take_count(data, at, end, most):
    """The count at data[at] and where it ends, or NONE where none up to `most` ends before `end`."""
    count = np.int64(0)
    for shift in range(0, 63, 7):
        if at >= end:
            break
        group = np.int64(data[at])
        at += 1
        count |= (group & 127) << shift
        if not 0 <= count <= most:
            break
        if group < 128:
            return count, at
    return np.int64(NONE), at


@kernel
def take_counts(data, at, ends, most, running, numbers):
    """Read counts up to `most`, or their running totals, into numbers (m,)."""
    before = 0
    for i in range(at.size):
        count, end = take_count(data, at[i], ends[i], of_row(most, i))
        if count < 0:
            return i
        at[i], numbers[i] = end, before + count
        before = numbers[i] if running else 0
    return NONE


@kernel
def too_short(at, ends, stops, nbits):
    """The first row that has no room for as many of so many bits as end at stops (m,), or NONE."""
    start = 0
    for i in range(at.size):
        if (stops[i] - start) * nbits > 8 * (ends[i] - at[i]):
            return i
        start = stops[i]
    return NONE


@kernel
def take_values(data, at, ends, stops, precision, values):
    """Read floats into values (T,), those of a row before stops[i]; no one is written unless all are there."""
    size, start = float_bytes(precision), 0
    short = too_short(at, ends, stops, 8 * size)
    if short == NONE:
        for i in range(at.size):
            take_floats(data, at[i], precision, values[start : stops[i]])
            at[i] += (stops[i] - start) * size
            start = stops[i]
    return short


@kernel
def take_bytes(data, at, ends, most, numbers):
    """Read a byte up to `most` of each row into numbers (m,)."""
    for i in range(at.size):
        if at[i] >= ends[i] or data[at[i]] > most:
            return i
        numbers[i] = data[at[i]]
        at[i] += 1
    return NONE


@kernel
def skip(at, ends, nbits):
    """Move `at` over so many bits of each row, in whole bytes."""
    for i in range(at.size):
        nbytes = (of_row(nbits, i) + 7) // 8
        if nbytes > ends[i] - at[i]:
            return i
        at[i] += nbytes
    return NONE


@kernel
def put_signs(negative, ends, out, stops):
    """Write flags (T,), those of a row before ends[i], as bits, the first one lowest."""
    start = at = 0
    for i in range(ends.size):
        at += write_flags(negative[start : ends[i]], out[at:])
        start, stops[i] = ends[i], at


@kernel
def take_signs(data, at, ends, stops, negative):
    """Read flags into negative (T,), those of a row before stops[i]."""
    start = 0
    short = too_short(at, ends, stops, 1)
    if short == NONE:
        for i in range(at.size):
            at[i] = read_flags(data, at[i], negative[start : stops[i]])
            start = stops[i]
    return short


@kernel
def put_signed(integers, widths, out, stops):
    """Write integers (m, d) below 2^width ≤ 2³¹ in size as fields, with their signs as the lowest bits; nothing where the width is
    0."""
    at = u(0)
    for i in range(stops.size):
        width = u(of_row(widths, i))
        if width > u(0):
            stream = u(0), u(0), at
            for j in range(integers.shape[1]):
                integer = np.int64(integers[i, j])
                field = u(abs(integer)) << u(1) | u(integer < 0)
                stream = put(field, width + u(1), out, stream)
            at = put_rest(out, stream)
        stops[i] = at


@kernel
def take_signed(data, at, ends, widths, most, integers):
    """Read integers (m, d), up to `most` in size, of these widths."""
    d = integers.shape[1]
    for i in range(at.size):
        width = u(of_row(widths, i))
        if width == u(0):
            integers[i] = 0
            continue
        end = at[i] + (d * np.int64(width + u(1)) + 7) // 8
        if end > ends[i]:
            return i
        bit, mask, largest = u(8) * u(at[i]), (u(2) << width) - u(1), u(0)
        for j in range(d):
            field = window(data, bit) & mask
            bit += width + u(1)
            size = field >> u(1)
            largest = max(largest, size)
            integers[i, j] = -np.int64(size) if field & u(1) else np.int64(size)
        if largest > u(of_row(most, i)):
            return i
        at[i] = end
    return NONE
