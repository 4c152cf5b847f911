"""Puts parsed rows, (indptr (m+1,), indices (nnz,), values (nnz,)), to their places in a data file."""

import numpy as np

from mpi_compress.kernels import kernel
from mpi_compress.kernels.vectors import norm


@kernel
def unit_rows(indptr, values):
    """Divide the values of every row by the row's norm; zero rows stay."""
    for i in range(indptr.size - 1):
        row = values[indptr[i] : indptr[i + 1]]
        size = norm(row)
        if size > 0.0:
            for p in range(row.size):
                row[p] /= size


@kernel
def place_sparse(indptr, indices, values, position, starts, out_indices, out_values):
    """Copy row i to the place of row position[i], unless that is negative; starts (N,): where a placed row begins."""
    for i in range(position.size):
        if position[i] >= 0:
            at = starts[position[i]]
            for p in range(indptr[i], indptr[i + 1]):
                out_indices[at] = np.uint32(indices[p])
                out_values[at] = values[p]
                at += 1


@kernel
def place_dense(indptr, indices, values, position, out):
    """Copy row i to row position[i] of an array (N, d), with its zeros, unless that is negative."""
    for i in range(position.size):
        if position[i] >= 0:
            row = out[position[i]]
            row[:] = 0.0
            for p in range(indptr[i], indptr[i + 1]):
                row[indices[p]] = values[p]
