"""Small operations on vectors; additions have a fixed order, so that results are the same on any layout.

What writes to an array compares lengths first, and raises ValueError where they do not fit: users' algorithms call it, too.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.kernels import inlined_kernel, kernel
from mpi_compress.kernels.hits import take


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
    if indices.size and np.uint64(largest) >= np.uint64(size):
        raise ValueError("a sparse vector has an index beyond the vector that it is added to")


@kernel
def scatter_add(indices, values, scale, out):
    """out[indices] += scale · values, for indices (T,) uint32."""
    refuse_unequal(indices.size, values.size)
    refuse_beyond(indices, out.size)
    for j in range(indices.size):
        out[indices[j]] += scale * values[j]


@kernel
def dense_add(values, scale, out):
    """out += scale · values, all (d,); values are floats or integers."""
    refuse_unequal(values.size, out.size)
    for j in range(values.size):
        out[j] += scale * values[j]


@kernel
def add_rows(rows, out):
    """out (d,) += each of rows (m, d), one after another."""
    refuse_unequal(rows.shape[1], out.size)
    for i in range(len(rows)):
        for j in range(out.size):
            out[j] += rows[i, j]


@kernel
def signs_add(indices, negative, magnitude, out):
    """out[indices] += ±magnitude, − where `negative`; indices (T,) uint32, negative (T,) bool."""
    refuse_unequal(indices.size, negative.size)
    refuse_beyond(indices, out.size)
    for j in range(indices.size):
        out[indices[j]] += -magnitude if negative[j] else magnitude


@kernel
def levels_add(levels, scales, bucket, scale, out):
    """out_j += scale · scales[⌊j / bucket⌋] · levels_j, levels and out (d,)."""
    refuse_unequal(levels.size, out.size)
    refuse_unequal(scales.size, (levels.size + bucket - 1) // bucket)
    for b in range(scales.size):
        step = scale * scales[b]
        for j in range(b * bucket, min((b + 1) * bucket, levels.size)):
            out[j] += step * levels[j]


@kernel
def united(a, b):
    """The increasing union of increasing arrays (m,) and (n,) of uint32."""
    out = np.empty(a.size + b.size, dtype=np.uint32)
    i = j = n = 0
    while i < a.size and j < b.size:
        out[n] = min(a[i], b[j])
        i += a[i] == out[n]
        j += b[j] == out[n]
        n += 1
    for rest in (a[i:], b[j:]):
        out[n : n + rest.size] = rest
        n += rest.size
    return out[:n].copy()


@kernel
def merge(indices, values, sign_indices, negative, magnitude, out_indices, out_values):
    """Merge two disjoint increasing index sets, with values (s,) and ±magnitude (r,), to one of s + r indices with values."""
    refuse_unequal(indices.size, values.size)
    refuse_unequal(sign_indices.size, negative.size)
    refuse_unequal(out_indices.size, indices.size + sign_indices.size)
    refuse_unequal(out_values.size, out_indices.size)
    i, j = np.uint64(0), np.uint64(0)
    for at in range(out_indices.size):
        if j == np.uint64(sign_indices.size) or (i < np.uint64(indices.size) and indices[i] < sign_indices[j]):
            out_indices[at] = indices[i]
            out_values[at] = values[i]
            i += np.uint64(1)
        else:
            out_indices[at] = sign_indices[j]
            out_values[at] = -magnitude if negative[j] else magnitude
            j += np.uint64(1)


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
    n = np.uint64(0)
    for j in range(indices.size):
        i = indices[j]
        if not seen[i]:
            seen[i] = True
            new[n] = i
            n += np.uint64(1)
        total[i] += values[j]
    return new[:n]


@kernel
def take_and_clear(indices, divisor, total, seen, values):
    """values = total[indices] / divisor; then total and seen are cleared there."""
    for j in range(indices.size):
        i = indices[j]
        values[j] = total[i] / divisor
        total[i] = 0.0
        seen[i] = False
