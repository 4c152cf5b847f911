"""Value and gradient of the losses of whole shards, in one pass over blocks of rows.

A matrix is as in `kernels.rows`. That of sparse rows may have values (N,), fewer than nnz: then those of a row are equal.

For a block the margins come first, then all losses, then the rows are added to the gradient; eight long dense rows are added while
the margins of the next eight are computed. No bit depends on the size of a block, nor on what is fetched ahead. The order of
additions: the products of a sparse row go to four sums a, b, c, d in turn, those after its last whole four to a, and
a_i · x = ((b + c) + d) + a; dense rows are as `kernels.lanes` says. Rows are added to the gradient one after another. No product is
rounded before it is added.
"""

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels.lanes import EIGHT, WHOLE, add_rows, dots, next_eight
from mpi_compress.kernels.losses import losses_and_slopes
from mpi_compress.kernels.rows import in_kernels, sparse_add, sparse_dot
from mpi_compress.kernels.vectors import compensated, sum_of_squares

_ONE = np.uint64(1)
_FAR = 2**16  # coordinates: from there on x and the gradient are not cached together
_BLOCK, _FAR_BLOCK = 512, 64  # rows
_CACHED = 2**14  # numbers in a block of dense rows
_LONG = _CACHED // 8  # numbers in a row: eight longer ones are a block


@in_kernels
def rows_of_a_block(matrix, dim):
    """How many rows are read together; of dense rows a multiple of 8."""
    if len(matrix) == 3:
        return lambda matrix, dim: np.uint64(_FAR_BLOCK if dim > _FAR else _BLOCK)
    return lambda matrix, dim: max(EIGHT, min(np.uint64(_BLOCK), np.uint64(_CACHED // max(dim, 1)) & WHOLE))


@in_kernels
def dots_of_a_block(matrix, i, are_first, x, scales, gradient, out):
    """out_r = a_{i+r} · x. `gradient` is what is added to next: where neither it nor x is cached, what sparse rows further on touch
    in both is fetched meanwhile. To eight long dense rows those before are added, times scales (8,), unless these are the first."""

    def sparse(matrix, i, are_first, x, scales, gradient, out):
        indptr, indices, values = matrix
        for r in range(np.uint64(out.size)):
            start, stop = indptr[i + r], indptr[i + r + _ONE]
            if values.size < indices.size:
                out[r] = sparse_dot(start, stop, indices, values[i + r], x, None)
            elif x.size > _FAR:
                out[r] = sparse_dot(start, stop, indices, values, x, gradient)
            else:
                out[r] = sparse_dot(start, stop, indices, values, x, None)

    def dense(matrix, i, are_first, x, scales, gradient, out):
        if x.size > _LONG and out.size == EIGHT:
            next_eight(matrix[0], i, x, scales, gradient, out, are_first)
        else:
            dots(matrix[0], i, x, out)

    return sparse if len(matrix) == 3 else dense


@in_kernels
def add_block(matrix, i, scales, left, out):
    """out += Σ_r scales_r · a_{i+r}; long dense rows only if fewer than eight rows are left after them, for else the next do it."""

    def sparse(matrix, i, scales, left, out):
        indptr, indices, values = matrix
        for r in range(np.uint64(scales.size)):
            start, stop = indptr[i + r], indptr[i + r + _ONE]
            if scales[r] != 0.0:
                if values.size < indices.size:
                    sparse_add(start, stop, indices, values[i + r], scales[r], out)
                else:
                    sparse_add(start, stop, indices, values, scales[r], out)

    def dense(matrix, i, scales, left, out):
        if out.size <= _LONG or left < EIGHT:
            add_rows(matrix[0], i, scales, out)

    return sparse if len(matrix) == 3 else dense


@kernel
def _add_rows(matrix, labels, start, stop, loss, weight, x, gradient):
    """gradient (d,) += Σ weight·∂ℓ a_j over rows start … stop − 1; returns Σ ℓ(y_j, a_j·x). The losses are summed with compensation
    (Neumaier), so that the value is right to a few ulp for any number of rows."""
    most = min(rows_of_a_block(matrix, x.size), max(stop - start, _ONE))
    margins, of_rows, slopes = np.empty(most), np.empty(most), np.empty(most)
    total, lost = 0.0, 0.0
    for i in range(start, stop, most):
        n = min(most, stop - i)
        dots_of_a_block(matrix, i, i == start, x, slopes, gradient, margins[:n])
        losses_and_slopes(loss, labels[i : i + n], margins[:n], of_rows[:n], slopes[:n])
        for r in range(n):
            total, lost = compensated(total, lost, of_rows[r])
            slopes[r] *= weight
        add_block(matrix, i, slopes[:n], stop - i - n, gradient)
    if abs(total) < np.inf:  # or infinity would become NaN
        total += lost
    return total


@kernel
def losses_and_gradients(matrix, labels, cuts, loss, weight, mu, xs, values, gradients):
    """Σ weight·ℓ(y_j, a_j·x) + (µ/2)‖x‖² over the rows of each of m shards, and its gradient: values (m,), gradients (m, d). The
    i-th shard is the rows from cuts_i uint64 up to cuts_{i+1}, read once; x is the i-th of xs (m, d), or the one of (1, d)."""
    squares = 0.0
    for shard in range(values.size):
        x, gradient = xs[min(shard, len(xs) - 1)], gradients[shard]
        if mu != 0.0 and shard < len(xs):
            squares = sum_of_squares(x)
        gradient[:] = 0.0
        total = _add_rows(matrix, labels, cuts[shard], cuts[shard + 1], loss, weight, x, gradient)
        if mu != 0.0:
            for j in range(x.size):
                gradient[j] += mu * x[j]
        values[shard] = weight * total + 0.5 * mu * squares


@kernel
def lay_out(held, values, mu, x, is_sparse, nonzeros, is_dirty, held_before, nonzeros_before, gradient):
    """gradient (d,) becomes `values` on the increasing coordinates `held`, 0 elsewhere, plus µx, as dense additions round it.

    Args:
        is_sparse: x is 0 but on `nonzeros`, uint32 as all coordinates.
        is_dirty: `gradient` has any numbers; else it is 0 but on `held_before` and `nonzeros_before`.
    """
    if not is_sparse and mu != 0.0:
        for j in range(x.size):
            gradient[j] = mu * x[j] + 0.0
    elif is_dirty:
        gradient[:] = 0.0
    else:
        for j in held_before:
            gradient[j] = 0.0
        for j in nonzeros_before:
            gradient[j] = 0.0
    if mu == 0.0:
        for t in range(np.uint64(held.size)):
            gradient[held[t]] = values[t]
        return
    for j in nonzeros:
        gradient[j] = mu * x[j] + 0.0
    for t in range(np.uint64(held.size)):
        gradient[held[t]] = values[t] + mu * x[held[t]]
