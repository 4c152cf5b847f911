"""Rows that are pairs of a user and an item: two nonzero features, users first."""

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.errors import UserError
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.rows import Rows


def pairs_of(rows: Rows, model: str) -> tuple[NDArray[np.int64], Vector]:
    """The two features of every row (N, 2), and the products of their values (N,); UserError if a row has not two."""
    if len(rows.matrix) == 3:
        indptr, indices, values = rows.matrix
        lengths = (indptr[1:] - indptr[:-1]).astype(np.int64)
    else:
        row, indices = np.nonzero(rows.matrix[0])
        values, lengths = rows.matrix[0][row, indices], np.bincount(row, minlength=len(rows))
    if not np.all(lengths == 2):
        wrong = int(np.argmax(lengths != 2))
        raise UserError(f"{model}: a row has {lengths[wrong]} nonzero features; a rating has two, its user and its item")
    return indices.reshape(-1, 2).astype(np.int64), np.prod(values.reshape(-1, 2), axis=1, dtype=np.float64)
