"""Floats of 32 or 64 bits as little-endian bytes."""

import numpy as np

from mpi_compress.kernels import kernel

u = np.uint64


@kernel
def put_floats(values, nbits, out):
    """Write values (T,) float64, rounded to floats of `nbits`, into `out` uint8. Returns whether no finite one overflows."""
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
    """Round values (T,) to `out` (T,) float32. Returns whether no finite one overflows."""
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
