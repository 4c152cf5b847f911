"""Hard thresholds: one pass to count, so that a vector with nothing above costs nothing more."""

import numpy as np

from mpi_compress.kernels import kernel, reassociating_kernel


@kernel
def count_reaching(v, threshold):
    """How many coordinates have |v_j| ≥ threshold, NaN included."""
    n = np.int64(0)
    for j in range(v.size):
        n += not abs(v[j]) < threshold
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
def take_reaching(v, threshold, indices, values):
    """The increasing indices (n,) with |v_j| ≥ threshold, and the values there, n being their count."""
    u = np.uint64
    at = i = u(0)
    while at < u(indices.size):
        if not abs(v[i]) < threshold:
            indices[at] = i
            values[at] = v[i]
            at += u(1)
        i += u(1)


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
