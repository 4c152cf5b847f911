"""Small operations on vectors, in a fixed order of additions, so that results are the same on any layout."""

import numpy as np

from mpi_compress.kernels import kernel


@kernel
def are_equal(a, b):
    """True if all a_j = b_j, both (d,); NaN equals nothing."""
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


@kernel
def scatter_add(indices, values, scale, out):
    """out[indices] += scale · values, for increasing indices (T,) uint32."""
    for j in range(indices.size):
        out[indices[j]] += scale * values[j]


@kernel
def dense_add(values, scale, out):
    """out += scale · values, all (d,)."""
    for j in range(values.size):
        out[j] += scale * values[j]


@kernel
def all_finite(values):
    """Whether no value is NaN or infinite."""
    for a in values:
        if not abs(a) < np.inf:
            return False
    return True


@kernel
def scatter_add_noting(indices, values, total, seen):
    """total[indices] += values. Returns the coordinates not `seen` before, in the order in which they came."""
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
