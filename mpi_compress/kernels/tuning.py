"""Passes over a gradient that CAT's search needs."""

import numpy as np

from mpi_compress.kernels import kernel, reassociating_kernel
from mpi_compress.kernels.hits import BLOCK, append_hits, with_room


@reassociating_kernel
def _sums(v, start, stop):
    absolute, squares = 0.0, 0.0
    for j in range(start, stop):
        absolute += abs(v[j])
        squares += v[j] * v[j]
    return absolute, squares


@kernel
def sums_and_above(v, threshold):
    """Σ|v_j|, Σv_j² and the increasing indices with |v_j| > threshold, in one pass over v (d,)."""
    u = np.uint64
    found, n = with_room(np.empty(v.size >> 3, dtype=np.uint32), u(0)), u(0)
    hit = np.zeros(BLOCK, dtype=np.uint8)
    eight = hit.view(np.uint64)
    absolute, squares = 0.0, 0.0
    for start in range(0, v.size, BLOCK):
        size = min(BLOCK, v.size - start)
        a, s = _sums(v, u(start), u(start + size))
        absolute += a
        squares += s
        if s > threshold * threshold or not s >= 0.0:
            found = with_room(found, n)
            for j in range(size):
                hit[j] = abs(v[u(start) + u(j)]) > threshold
            n = append_hits(hit, eight, size, start, found, n)
    return absolute, squares, found[:n].copy()


@kernel
def omega(largest, absolute, squares, out):
    """out[T − 1] = ω(T), T = 1 … m, from the m largest magnitudes, falling, and the sums over all d coordinates.

    With k magnitudes saturated (p = 1), the others have p_j = |g_j|(T − k)/Σ_{j>k}|g_j|; k is the smallest number for which no
    such p_j exceeds 1, and it grows with T.
    """
    k = 0
    first, second = 0.0, 0.0  # of the saturated: Σ|g_j|, Σg_j²
    for i in range(out.size):
        T = i + 1.0
        while k < i and largest[k] * (T - k) > absolute - first:
            first += largest[k]
            second += largest[k] * largest[k]
            k += 1
        rest = max(absolute - first, 0.0)
        out[i] = min(1.0, squares / max(second + rest * rest / (T - k), 1e-300))
