"""Gradients of minibatches, added to where they are wanted. Matrices as in `rows`; x is a scalar `scale` times a vector z (d,)."""

import numpy as np

from mpi_compress.kernels import kernel, reassociating_kernel
from mpi_compress.kernels.losses import loss_and_slope
from mpi_compress.kernels.rows import row_add, row_add_with, row_dot
from mpi_compress.kernels.threshold import squares_below


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


@kernel
def grow(e, g, h, threshold, squares):
    """e += g − h, or e += g where h (m, 0) has no columns, all (m, d); `squares` (m,) get what `squares_below` then says of the
    rows of e, −1 where the threshold is 0."""
    for i in range(e.shape[0]):
        if h.shape[1] == 0:
            for j in range(e.shape[1]):
                e[i, j] += g[i, j]
        else:
            for j in range(e.shape[1]):
                e[i, j] += g[i, j] - h[i, j]
        squares[i] = squares_below(e[i], threshold) if threshold > 0.0 else -1.0


@reassociating_kernel
def squares(v):
    """Σ v_j²."""
    total = 0.0
    for j in range(v.size):
        total += v[j] * v[j]
    return total


@kernel
def take_out(indices, values, v):
    """v[indices] −= values. Returns Σ v² there, before and after."""
    before = after = 0.0
    for j in range(indices.size):
        i = indices[j]
        a = v[i]
        b = a - values[j]
        v[i] = b
        before += a * a
        after += b * b
    return before, after


@kernel
def take_out_and_measure(indices, values, v):
    """v[indices] −= values. Returns ‖v‖² before and after."""
    before, after = take_out(indices, values, v)
    left = squares(v)
    return left - after + before, left
