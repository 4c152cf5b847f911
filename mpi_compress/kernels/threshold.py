"""Hard thresholds: one pass, at the cost of reading the vector where little is above."""

import numpy as np

from mpi_compress.kernels import kernel, reassociating_kernel

_BLOCK = 32


@kernel
def reaching(v, threshold, indices, values):
    """The increasing indices with |v_j| ≥ threshold, NaN included, and the values there, written to the front of two arrays (d,).

    Returns how many there are. Blocks are looked through by vector instructions; only where one holds something, one by one.
    """
    u = np.uint64
    n = u(0)
    for start in range(u(0), u(v.size), u(_BLOCK)):
        end = min(start + u(_BLOCK), u(v.size))
        some = np.int64(0)
        for j in range(start, end):
            some += not abs(v[j]) < threshold
        if some:
            for j in range(start, end):
                indices[n] = j
                values[n] = v[j]
                n += u(not abs(v[j]) < threshold)
    return n


@reassociating_kernel
def squares_below(v, threshold):
    """‖v‖² if all |v_j| < threshold, otherwise −1."""
    n, total = np.int64(0), 0.0
    for j in range(v.size):
        n += not abs(v[j]) < threshold
        total += v[j] * v[j]
    return total if n == 0 else -1.0


@kernel
def reaching_among(v, touched, threshold):
    """The same among `touched` (increasing)."""
    u = np.uint64
    indices = np.empty(touched.size, dtype=np.uint32)
    values = np.empty(touched.size)
    n = u(0)
    for p in range(touched.size):
        j = touched[p]
        if not abs(v[j]) < threshold:
            indices[n] = j
            values[n] = v[j]
            n += u(1)
    return indices[:n].copy(), values[:n].copy()
