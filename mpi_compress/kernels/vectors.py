"""Small operations on vectors; additions have a fixed order, so that results are the same on any layout.

What writes to an array compares lengths first, and raises ValueError where they do not fit: users' algorithms call it, too.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.kernels import inlined_kernel, kernel
from mpi_compress.kernels.hits import take

u = np.uint64

def taken(v: NDArray[np.float64], indices: NDArray[Any]) -> NDArray[np.float64]:
    """v[indices] as a new array (T,) of float64."""
    out = np.empty(indices.size)
    take(v, indices, out)
    return out


@kernel
def are_equal(a, b):
    """True if all a_j = b_j, both of one length; NaN equals nothing."""
    if a.size != b.size:
        return False
    for j in range(a.size):
        if a[j] != b[j]:
            return False
    return True


@kernel
def norm(v):
    """‖v‖ of v (d,), without overflow or underflow in the squares; NaN and infinity propagate."""
    peak = 0.0
    for a in v:
        a = abs(a)
        if not a <= peak:
            peak = a
            if not a < np.inf:
                break
    if peak == 0.0 or not peak < np.inf:
        return peak
    total = 0.0
    if 1e-140 < peak < 1e140:
        for a in v:
            total += a * a
        return np.sqrt(total)
    for a in v:
        total += (a / peak) * (a / peak)
    return peak * np.sqrt(total)


@kernel
def squared_norm(v):
    """‖v‖²; infinite where it overflows; Python's power would raise."""
    size = norm(v)
    return size * size


@inlined_kernel
def compensated(total, lost, value):
    """total + value, and what such sums have lost to rounding in all (Neumaier)."""
    added = total + value
    lost += (total - added) + value if total >= value else (value - added) + total
    return added, lost


@kernel
def squared_norms(v):
    """‖v_i‖² (m,) of rows (m, d)."""
    out = np.empty(v.shape[0])
    for i in range(out.size):
        out[i] = squared_norm(v[i])
    return out


@kernel
def pairwise_sum(v):
    """Σ v_j, d ≤ 128, in the order of `np.sum`: eight sums, added in pairs, and what is left of d / 8."""
    if v.size < 8:
        total = 0.0
        for a in v:
            total += a
        return total
    sums, whole = v[:8].copy(), v.size - v.size % 8
    for start in range(8, whole, 8):
        for lane in range(8):
            sums[lane] += v[start + lane]
    total = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]))
    for j in range(whole, v.size):
        total += v[j]
    return total


@kernel
def _short_means(values, ends, out):
    start = 0
    for i in range(ends.size):
        out[i] = pairwise_sum(values[start : ends[i]]) / (ends[i] - start)
        start = ends[i]


def lengths_of(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """How much each part holds (m,); `ends` (m,) says where each ends. NumPy's `diff` with a first 0 takes ten times as long."""
    lengths = ends.copy()
    lengths[1:] -= ends[:-1]
    return lengths


def means_of_parts(values: NDArray[np.float64], ends: NDArray[np.int64]) -> NDArray[np.float64]:
    """The mean (m,) of each part of values (T,), as `np.mean` rounds it; `ends` (m,) says where each ends."""
    out, lengths = np.empty(ends.size), lengths_of(ends)
    if lengths.max(initial=0) <= 128:
        _short_means(values, ends, out)
    else:
        out[:] = [np.mean(values[end - length : end]) for end, length in zip(ends, lengths, strict=True)]
    return out


@kernel
def sum_of_squares(v):
    """Σ v_j² of v (d,), one after another."""
    total = 0.0
    for a in v:
        total += a * a
    return total


@inlined_kernel
def refuse_unequal(size, other):
    if size != other:
        raise ValueError("two vectors that should have the same length have not")


@inlined_kernel
def refuse_beyond(indices, size):
    """Compare every index, whose order is not known, with the size of the array that it is an index of."""
    largest = np.uint32(0)
    for i in indices:
        largest = max(largest, i)
    if indices.size and u(largest) >= u(size):
        raise ValueError("a sparse vector has an index beyond the vector that it is added to")


# Row i of what is added goes to out[to_i], row after row; `out` is (·, d), and `to` (m,) int64.


@inlined_kernel
def refuse_rows(m, to, rows):
    """Compare the number of rows that are added with the places that they go to, and these with the rows that there are."""
    refuse_unequal(m, to.size)
    for i in to:
        if not 0 <= i < rows:
            raise ValueError("a row is added to one that is not there")


@kernel
def scatter_add(indices, values, ends, scale, to, out):
    """out += scale · values at indices uint32, both (T,); `ends` (m,) says where each row ends."""
    refuse_unequal(indices.size, values.size)
    refuse_beyond(indices, out.shape[1])
    refuse_rows(ends.size, to, out.shape[0])
    start = u(0)
    for i in range(ends.size):
        into, stop = out[to[i]], u(ends[i])
        for j in range(start, min(stop, u(indices.size))):
            into[indices[j]] += scale * values[j]
        start = stop


@kernel
def add_rows(rows, out):
    """out (d,) += each of rows (m, d), one after another."""
    refuse_unequal(rows.shape[1], out.size)
    for i in range(len(rows)):
        for j in range(out.size):
            out[j] += rows[i, j]


@kernel
def signs_add(indices, negative, ends, magnitudes, to, out):
    """out += ±magnitudes (m,) at indices (T,) uint32, − where `negative` (T,)."""
    refuse_unequal(indices.size, negative.size)
    refuse_unequal(ends.size, magnitudes.size)
    refuse_beyond(indices, out.shape[1])
    refuse_rows(ends.size, to, out.shape[0])
    start = u(0)
    for i in range(ends.size):
        into, stop, magnitude = out[to[i]], u(ends[i]), magnitudes[i]
        for j in range(start, min(stop, u(indices.size))):
            into[indices[j]] += -magnitude if negative[j] else magnitude
        start = stop


@kernel
def levels_add(levels, steps, bucket, scale, to, out):
    """out_j += scale · steps[⌊j / bucket⌋] · levels_j, levels (m, d), integers or floats, steps (m, ⌈d / bucket⌉)."""
    refuse_unequal(levels.shape[1], out.shape[1])
    refuse_unequal(levels.shape[0], steps.shape[0])
    refuse_unequal(steps.shape[1], (levels.shape[1] + bucket - 1) // bucket)
    refuse_rows(levels.shape[0], to, out.shape[0])
    for i in range(levels.shape[0]):
        into, row = out[to[i]], levels[i]
        for b in range(steps.shape[1]):
            step, start, stop = scale * steps[i, b], b * bucket, (b + 1) * bucket
            held, added = into[start:stop], row[start:stop]
            for j in range(added.size):
                held[j] += step * added[j]


@kernel
def powers_add(integers, least, fraction, finite, scale, to, out):
    """out_j += scale · v_j, v as `Powers` has it: integers (m, d), least (m,) and finite (m,)."""
    refuse_unequal(integers.shape[1], out.shape[1])
    refuse_unequal(integers.shape[0], least.size)
    refuse_rows(least.size, to, out.shape[0])
    one = np.int64(1) << fraction
    for i in range(least.size):
        into, row = out[to[i]], integers[i]
        for j in range(row.size):
            size, value = abs(np.int64(row[j])) - 1, 0.0
            if not finite[i]:
                value = np.nan
            elif size >= 0:
                value = math.ldexp(float((size & (one - 1)) + one), least[i] - fraction + (size >> fraction))
            into[j] += scale * (-value if row[j] < 0 else value)


@kernel
def united(a, b):
    """The increasing union of increasing arrays (m,) and (n,) of uint32."""
    out = np.empty(a.size + b.size, dtype=np.uint32)
    i = j = n = 0
    while i < a.size or j < b.size:
        if j == b.size or (i < a.size and a[i] <= b[j]):
            out[n] = a[i]
            j += j < b.size and a[i] == b[j]
            i += 1
        else:
            out[n] = b[j]
            j += 1
        n += 1
    return out[:n].copy()


@kernel
def merge(indices, values, ends, sign_indices, negative, magnitudes, sign_ends):
    """Two disjoint increasing index sets of each row, with values (s,) and ±magnitude (r,), as one of s + r indices with values;
    `ends` and `sign_ends` (m,) say where the rows of each end, magnitudes (m,)."""
    refuse_unequal(indices.size, values.size)
    refuse_unequal(sign_indices.size, negative.size)
    size = indices.size + sign_indices.size
    out_indices, out_values = np.empty(size, dtype=np.uint32), np.empty(size)
    i, j, at = u(0), u(0), u(0)
    for row in range(ends.size):
        stop, sign_stop = u(ends[row]), u(sign_ends[row])
        while i < stop or j < sign_stop:
            if j == sign_stop or (i < stop and indices[i] < sign_indices[j]):
                out_indices[at] = indices[i]
                out_values[at] = values[i]
                i += u(1)
            else:
                out_indices[at] = sign_indices[j]
                out_values[at] = -magnitudes[row] if negative[j] else magnitudes[row]
                j += u(1)
            at += u(1)
    return out_indices, out_values


@kernel
def all_finite(values):
    """True if no value is NaN or infinite."""
    for a in values:
        if not abs(a) < np.inf:
            return False
    return True


@kernel
def scatter_add_noting(indices, values, total, seen):
    """total[indices] += values. Returns the coordinates not `seen` before, in the order in which they came."""
    refuse_unequal(indices.size, values.size)
    refuse_beyond(indices, total.size)
    new = np.empty(indices.size, dtype=np.uint32)
    n = u(0)
    for j in range(indices.size):
        i = indices[j]
        if not seen[i]:
            seen[i] = True
            new[n] = i
            n += u(1)
        total[i] += values[j]
    return new[:n]


@kernel
def take_and_clear(indices, divisor, total, seen):
    """total[indices] / divisor; then total and seen are cleared there."""
    values = np.empty(indices.size)
    for j in range(indices.size):
        i = indices[j]
        values[j] = total[i] / divisor
        total[i] = 0.0
        seen[i] = False
    return values
