"""Gradients of minibatches, added to where they are wanted. Matrices as in `rows`; x is a scalar `scale` times a vector z (d,)."""

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels.losses import loss_and_slope
from mpi_compress.kernels.rows import row_add, row_add_with, row_dot


@kernel
def add_gradient(matrix, labels, rows, loss, weight, mu, z, scale, out):
    """out (d,) += weight · Σ_{i ∈ rows} ∂ℓ(y_i, a_i·x) a_i + µ x."""
    c = mu * scale
    for r in range(rows.size):
        i = rows[r]
        _, slope = loss_and_slope(loss, labels[i], scale * row_dot(matrix, i, z))
        if slope == 0.0:
            continue
        if c == 0.0:
            row_add(matrix, i, weight * slope, out)
        else:
            row_add_with(matrix, i, weight * slope, c, z, out)
            c = 0.0
    if c != 0.0:
        for j in range(out.size):
            out[j] += c * z[j]


@kernel
def add_touching(indptr, indices, values, labels, rows, loss, weight, z, scale, out, touched):
    """The same for sparse rows and µ = 0; `touched` gets the coordinates, those of each row increasing.

    Returns what ‖out‖² grew by.
    """
    n = np.uint64(0)
    growth = 0.0
    matrix = (indptr, indices, values)
    for r in range(rows.size):
        i = rows[r]
        _, slope = loss_and_slope(loss, labels[i], scale * row_dot(matrix, i, z))
        c = weight * slope
        for p in range(indptr[i], indptr[i + np.uint64(1)]):
            j = indices[p]
            before = out[j]
            after = before + c * values[p]
            out[j] = after
            growth += (after - before) * (after + before)
            touched[n] = j
            n += np.uint64(1)
    return growth
