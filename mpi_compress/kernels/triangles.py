"""Symmetric matrices (s, s) as vectors (s(s + 1)/2,): their lower triangles by rows, off the diagonal times √2."""

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels.vectors import refuse_unequal

_ROOT = np.sqrt(2.0)


@kernel
def triangle(M):
    """A symmetric M (s, s) as such a vector, whose norm is ‖M‖_F."""
    out, at = np.empty(len(M) * (len(M) + 1) // 2), 0
    for i in range(len(M)):
        for j in range(i + 1):  # an expression of slices takes two seconds to compile
            out[at] = M[i, j] * _ROOT if j < i else M[i, j]
            at += 1
    return out


@kernel
def square(v):
    """The symmetric matrix (s, s) whose `triangle` begins with v (dim,), 0 after it; both halves are equal to the last bit."""
    s = at = 0
    while s * (s + 1) // 2 < v.size:
        s += 1
    M = np.zeros((s, s))
    for i in range(s):
        for j in range(min(i + 1, v.size - at)):
            M[i, j] = M[j, i] = v[at + j] if j == i else v[at + j] / _ROOT
        at += i + 1
    return M


@kernel
def add_pairs(dim, values, vectors, scale, out):
    """out (dim,) += scale · the triangle of Σ_r λ_r u_r u_rᵀ, for values (R,) and vectors (R, s); the sum in the order of r."""
    refuse_unequal(dim, out.size)
    row, at = np.empty(vectors.shape[1]), 0
    for i in range(row.size):
        row[:] = 0.0
        for r in range(values.size):
            first = values[r] * vectors[r, i]
            for j in range(i + 1):
                row[j] += first * vectors[r, j]
        for j in range(min(i + 1, dim - at)):
            out[at + j] += scale * (row[j] * _ROOT if j < i else row[j])
        at += i + 1
