"""Passes over the rows a_i of a shard, sparse or dense.

A matrix is a tuple of arrays: (indptr (N+1,) uint64, indices (nnz,) uint32, values (nnz,)) in CSR form, or (values (N, d),). The
kernels are written once, over `row_dot` and `row_add`; values may be float32 or float64, sums are float64. Sums are in written
orders: those of dense rows are in `kernels.lanes`.
"""

import numpy as np

from mpi_compress.kernels import by_types, kernel, lanes
from mpi_compress.kernels.instructions import fetch, fma
from mpi_compress.kernels.losses import loss_and_slope

u = np.uint64
_ONE, _TWO, _THREE, _FOUR = u(1), u(2), u(3), u(4)
_AHEAD = u(192)  # nonzeros: what they touch is fetched that early


in_kernels = by_types(error_model="numpy", forceinline=True)


@in_kernels
def value_at(values, p):
    """The p-th of values, or the one number that they all are."""
    return (lambda values, p: values[p]) if hasattr(values, "dtype") else (lambda values, p: values)


@in_kernels
def fetch_ahead(p, indices, x, gradient):
    """Ask for what four nonzeros further on touch in x and in the gradient, unless that is None."""

    def of_both(p, indices, x, gradient):
        q = min(p + _AHEAD, u(indices.size) - _FOUR)
        for j in range(q, q + _FOUR):
            fetch(x, indices[j])
            fetch(gradient, indices[j])

    return of_both if hasattr(gradient, "dtype") else lambda p, indices, x, gradient: None


@kernel
def sparse_dot(start, stop, indices, values, x, gradient):
    """Σ values_p x_{indices_p} over start ≤ p < stop, in four sums, each product added with one rounding. `gradient` is what is
    added to next, where neither it nor x is cached; else None."""
    a = b = c = d = 0.0
    p = start
    whole = start + ((stop - start) & ~_THREE)
    while p < whole:
        fetch_ahead(p, indices, x, gradient)
        a = fma(value_at(values, p), x[indices[p]], a)
        b = fma(value_at(values, p + _ONE), x[indices[p + _ONE]], b)
        c = fma(value_at(values, p + _TWO), x[indices[p + _TWO]], c)
        d = fma(value_at(values, p + _THREE), x[indices[p + _THREE]], d)
        p += _FOUR
    while p < stop:
        a = fma(value_at(values, p), x[indices[p]], a)
        p += _ONE
    return ((b + c) + d) + a


@kernel
def sparse_add(start, stop, indices, values, scale, out):
    """out_{indices_p} += scale · values_p over start ≤ p < stop, with one rounding each."""
    p = start
    whole = start + ((stop - start) & ~_THREE)
    while p < whole:
        for q in range(p, p + _FOUR):
            out[indices[q]] = fma(scale, value_at(values, q), out[indices[q]])
        p += _FOUR
    while p < stop:
        out[indices[p]] = fma(scale, value_at(values, p), out[indices[p]])
        p += _ONE


@in_kernels
def row_dot(matrix, i, x):
    """a_i · x."""
    if len(matrix) == 3:
        return lambda matrix, i, x: sparse_dot(matrix[0][i], matrix[0][i + _ONE], matrix[1], matrix[2], x, None)
    return lambda matrix, i, x: lanes.dot(matrix[0], i, x)


@in_kernels
def row_add(matrix, i, scale, out):
    """out += scale · a_i."""
    if len(matrix) == 3:
        return lambda matrix, i, scale, out: sparse_add(matrix[0][i], matrix[0][i + _ONE], matrix[1], matrix[2], scale, out)
    return lambda matrix, i, scale, out: lanes.add(matrix[0], i, scale, out)


@in_kernels
def row_square(matrix, i):
    """‖a_i‖²."""

    def sparse(matrix, i):
        total = 0.0
        for p in range(matrix[0][i], matrix[0][i + _ONE]):
            total = fma(matrix[2][p], matrix[2][p], total)
        return total

    def dense(matrix, i):
        total = 0.0
        for j in range(matrix[0].shape[1]):
            total = fma(matrix[0][i, j], matrix[0][i, j], total)
        return total

    return sparse if len(matrix) == 3 else dense


@kernel
def margins(matrix, x, out):
    """out (N,): a_i · x."""
    for i in range(u(out.size)):
        out[i] = row_dot(matrix, i, x)


@kernel
def gram_product(matrix, weights, v, out):
    """out (d,): Σ_i weights_i (a_i · v) a_i, that is Aᵀ diag(weights) A v."""
    out[:] = 0.0
    for i in range(u(weights.size)):
        row_add(matrix, i, weights[i] * row_dot(matrix, i, v), out)


@kernel
def add_gram(indptr, indices, values, weights, out):
    """out (d, d) += Σ_i weights_i a_i a_iᵀ, of rows in CSR form: Aᵀ diag(weights) A."""
    for i in range(u(weights.size)):
        start, stop = indptr[i], indptr[i + _ONE]
        for p in range(start, stop):
            scale, into = values[p] * weights[i], out[indices[p]]
            for q in range(start, stop):
                into[indices[q]] += scale * values[q]


@kernel
def weighted_sum(matrix, weights, out):
    """out (d,): Σ_i weights_i a_i, that is Aᵀ weights."""
    out[:] = 0.0
    for i in range(u(weights.size)):
        row_add(matrix, i, weights[i], out)


@kernel
def squared_norms(matrix, out):
    """out (N,): ‖a_i‖²."""
    for i in range(u(out.size)):
        out[i] = row_square(matrix, i)


@kernel
def add_gradients(matrix, labels, cuts, rows, ends, loss, weights, mu, zs, scale, out):
    """out (m, d) += weights_i · Σ ∂ℓ(y_j, a_j·x) a_j + µ x over minibatches of m shards: the i-th begins in row cuts_i uint64, and
    its minibatch are the `rows` uint64, counted from there, from ends_{i−1} up to ends_i. x = scale · z, z the i-th of zs
    (m, d), or the one of (1, d)."""
    r = 0
    for shard in range(ends.size):
        z, gradient = zs[min(shard, len(zs) - 1)], out[shard]
        c = mu * scale
        while r < ends[shard]:
            i = cuts[shard] + rows[r]
            r += 1
            _, slope = loss_and_slope(loss, labels[i], scale * row_dot(matrix, i, z))
            if slope == 0.0:
                continue
            row_add(matrix, i, weights[shard] * slope, gradient)
        if c != 0.0:
            for j in range(gradient.size):
                gradient[j] = fma(c, z[j], gradient[j])


@kernel
def add_touching(indptr, indices, values, labels, rows, loss, weight, z, scale, out):
    """`add_gradients` of sparse rows of a shard, µ = 0. Returns the coordinates, each row's increasing, and what ‖out‖² grew by."""
    n = u(0)
    for r in range(rows.size):
        n += indptr[rows[r] + _ONE] - indptr[rows[r]]
    touched = np.empty(n, np.uint32)
    n = u(0)
    growth = 0.0
    matrix = (indptr, indices, values)
    for r in range(rows.size):
        i = rows[r]
        _, slope = loss_and_slope(loss, labels[i], scale * row_dot(matrix, i, z))
        c = weight * slope
        for p in range(indptr[i], indptr[i + _ONE]):
            j = indices[p]
            before = out[j]
            after = before + c * values[p]
            out[j] = after
            growth += (after - before) * (after + before)
            touched[n] = j
            n += _ONE
    return touched, growth


@kernel
def ascend(matrix, labels, squares, order, mu, cap, alpha, x):
    """One pass of dual coordinate ascent for the hinge loss (Hsieh et al., ICML 2008, Algorithm 1).

    Each α_i, i along `order` (uint64), is set to its best value in [0, cap], the others fixed; x (d,) stays (1/µ) Σ α_i y_i a_i;
    squares (N,): ‖a_i‖².  Returns how many α_i changed.
    """
    moved = 0
    for i in order:
        if squares[i] == 0.0:
            alpha[i] = cap
            continue
        slope = labels[i] * row_dot(matrix, i, x) - 1.0
        new = min(max(alpha[i] - slope * mu / squares[i], 0.0), cap)
        if new != alpha[i]:
            row_add(matrix, i, labels[i] * (new - alpha[i]) / mu, x)
            alpha[i] = new
            moved += 1
    return moved
