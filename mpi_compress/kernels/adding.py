"""out += scale · v for each kind of compressed vector v, in the order of its coordinates."""

import numpy as np

from mpi_compress.kernels import kernel


@kernel
def signs_add(indices, negative, magnitude, out):
    """out[indices] += ±magnitude, − where `negative`; indices (T,) uint32, negative (T,) bool."""
    for j in range(indices.size):
        out[indices[j]] += -magnitude if negative[j] else magnitude


@kernel
def integers_add(integers, step, out):
    """out += step · integers, all (d,)."""
    for j in range(integers.size):
        out[j] += step * integers[j]


@kernel
def levels_add(levels, scales, bucket, scale, out):
    """out_j += scale · scales[⌊j / bucket⌋] · levels_j, levels and out (d,)."""
    for b in range(scales.size):
        step = scale * scales[b]
        for j in range(b * bucket, min((b + 1) * bucket, levels.size)):
            out[j] += step * levels[j]


@kernel
def merge(indices, values, sign_indices, negative, magnitude, out_indices, out_values):
    """Merge two disjoint increasing index sets, with values (s,) and ±magnitude (r,), to one of s + r indices with values."""
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
