"""The coordinates that reach a threshold, found in one pass."""

import numpy as np

from mpi_compress.kernels import inlined_kernel, kernel

u = np.uint64
_BLOCK = u(32)  # coordinates that are compared before any of them is looked at alone


@inlined_kernel
def _reaches_within(v, start, stop, threshold):
    found = False
    for j in range(start, stop):
        found |= not abs(v[j]) < threshold
    return found


@kernel
def reaching(v, threshold, indices, values):
    """The increasing indices with |v_j| ≥ threshold, NaN included, and the values there, written to the front of two arrays (d,).
    Returns their number."""
    n, size = u(0), u(v.size)
    for start in range(u(0), size, _BLOCK):
        stop = min(start + _BLOCK, size)
        if _reaches_within(v, start, stop, threshold):
            for j in range(start, stop):  # without a branch that processors could mispredict
                indices[n] = j
                values[n] = v[j]
                n += u(not abs(v[j]) < threshold)
    return n


@kernel
def reaching_of_rows(vs, threshold):
    """`reaching` in each row of vs (m, d): indices and values, one row after another, and where those of each row end."""
    m, dim = vs.shape
    n, ends = 0, np.empty(m, dtype=np.int64)
    indices, values = np.empty(vs.size, dtype=np.uint32), np.empty(vs.size)
    for i in range(m):
        n += int(reaching(vs[i], threshold, indices[n : n + dim], values[n : n + dim]))
        ends[i] = n
    return indices[:n].copy(), values[:n].copy(), ends


@kernel
def reaching_among(v, touched, threshold):
    """`reaching` among the coordinates `touched` (increasing): their indices and values."""
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
