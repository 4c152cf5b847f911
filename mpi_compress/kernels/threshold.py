"""Hard thresholds: one pass to count, so that a vector with nothing above costs nothing more."""

import numpy as np

from mpi_compress.kernels import kernel


@kernel
def reaching(v, threshold):
    """The increasing indices with |v_j| ≥ threshold, NaN included, and the values there."""
    u = np.uint64
    n = np.int64(0)
    for j in range(v.size):
        n += not abs(v[j]) < threshold
    indices = np.empty(n, dtype=np.uint32)
    values = np.empty(n)
    at = i = u(0)
    while at < u(n):
        if not abs(v[i]) < threshold:
            indices[at] = i
            values[at] = v[i]
            at += u(1)
        i += u(1)
    return indices, values


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
