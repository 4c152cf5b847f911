"""A vector in memory that several processes share: atomic additions, and locks of its coordinates, 1 while held."""

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels.instructions import replace


@kernel
def add_shared(indices, values, scale, out):
    """out[indices] += scale · values in memory that several processes share, each coordinate atomically: no addition is lost.
    Returns how often another process changed a coordinate first."""
    retries = 0
    for j in range(indices.size):
        i = np.uint64(indices[j])
        change = scale * values[j]
        while True:
            before = out[i]
            if replace(out, i, before, before + change):
                break
            retries += 1
    return retries


@kernel
def lock(locks, i, tries):
    """Take lock i in at most `tries` tries. Returns how many failed; `tries` if it was not taken."""
    failed = 0
    while failed < tries and not replace(locks, i, 0.0, 1.0):
        failed += 1
    return failed


@kernel
def read_locked(locks, shared, at, tries, out):
    """out[j] ← shared[j] from j = at on, each under its lock, up to the first lock that `tries` tries do not take. Returns that j,
    shared.size after the last one, and how many tries failed."""
    failed = 0
    for j in range(at, shared.size):
        i = np.uint64(j)
        now = lock(locks, i, tries)
        failed += now
        if now == tries:
            return j, failed
        out[i] = shared[i]
        replace(locks, i, 1.0, 0.0)
    return shared.size, failed


@kernel
def add_locked(locks, indices, values, scale, at, tries, shared):
    """shared[indices[j]] += scale · values[j] from j = at on, each under its lock; it returns as `read_locked` does."""
    failed = 0
    for j in range(at, indices.size):
        i = np.uint64(indices[j])
        now = lock(locks, i, tries)
        failed += now
        if now == tries:
            return j, failed
        shared[i] += scale * values[j]
        replace(locks, i, 1.0, 0.0)
    return indices.size, failed
