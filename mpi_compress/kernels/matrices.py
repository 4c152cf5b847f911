"""Symmetric matrices (s, s) as vectors (s(s + 1)/2,): their lower triangles by rows, off the diagonal times √2.

And products of two rows of factors: predictions of matrix factorisation, and their gradient.
"""

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels.vectors import refuse_unequal

_ROOT = np.sqrt(2.0)


@kernel
def triangle(M):
    """A symmetric M (s, s) as such a vector, whose norm is ‖M‖_F."""
    out, at = np.empty(len(M) * (len(M) + 1) // 2), 0
    for i in range(len(M)):
        out[at : at + i] = M[i, :i] * _ROOT
        out[at + i] = M[i, i]
        at += i + 1
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
        row[: i + 1] = 0.0
        for r in range(values.size):
            first = values[r] * vectors[r, i]
            for j in range(i + 1):
                row[j] += first * vectors[r, j]
        row[:i] *= _ROOT
        for j in range(min(i + 1, dim - at)):
            out[at + j] += scale * row[j]
        at += i + 1


@kernel
def predictions(pairs, scales, factors, biases, out):
    """out (N,) = scales_r ⟨F_i, F_j⟩ + b_i + b_j for each of pairs (N, 2); factors (features, rank), biases (features,) or (0,)."""
    for r in range(np.uint64(out.size)):
        u, v = factors[pairs[r, 0]], factors[pairs[r, 1]]
        total = 0.0
        for c in range(u.size):
            total += u[c] * v[c]
        out[r] = scales[r] * total
        if biases.size:
            out[r] += biases[pairs[r, 0]] + biases[pairs[r, 1]]


@kernel
def add_gradient(pairs, scales, slopes, factors, of_factors, of_biases):
    """Adds Σ_r slopes_r ∇(prediction of pair r) to of_factors (features, rank) and of_biases (features,) or (0,)."""
    for r in range(np.uint64(slopes.size)):
        i, j = pairs[r, 0], pairs[r, 1]
        slope = slopes[r]
        scale = slope * scales[r]
        for c in range(factors.shape[1]):
            u, v = factors[i, c], factors[j, c]
            of_factors[i, c] += scale * v
            of_factors[j, c] += scale * u
        if of_biases.size:
            of_biases[i] += slope
            of_biases[j] += slope
