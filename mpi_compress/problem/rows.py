import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # which loads sparse where it is first used
from numpy.typing import NDArray

from mpi_compress.core.errors import UserError
from mpi_compress.kernels import rows as kernels
from mpi_compress.messages.kinds import Indices, Vector

Integers = NDArray[np.int64]
RowIndices = NDArray[np.uint64]  # of samples of a shard


def distinct(values: NDArray) -> NDArray:
    """What np.unique gives of nonnegative integers; of millions it takes a ninth of its time."""
    ordered = np.sort(values)
    return ordered[np.diff(ordered, prepend=-1) != 0]


@dataclass(frozen=True)
class Rows:
    """Samples a_j with their labels y_j, in memory."""

    matrix: tuple[NDArray, ...]  # (indptr, indices, values) in CSR form, or (values (N, d),), which are kept C-contiguous
    labels: Vector  # (N,)
    dim: int
    whole: "Rows | None" = None  # what these were cut from,
    start: int = 0  # and from which row on

    def __post_init__(self) -> None:
        if len(self.matrix) == 1 and not self.matrix[0].flags.c_contiguous:
            object.__setattr__(self, "matrix", (np.ascontiguousarray(self.matrix[0]),))

    def __len__(self) -> int:
        return self.labels.size

    @property
    def nonzeros(self) -> int:
        return self.matrix[-1].size

    def margins(self, x: Vector) -> Vector:
        """a_j·x (N,) of every sample, a new array."""
        out = np.empty(len(self))
        kernels.margins(self.matrix, x, out)
        return out

    def squares(self) -> Vector:
        """‖a_j‖² (N,) of every sample."""
        out = np.empty(len(self))
        kernels.squared_norms(self.matrix, out)
        return out

    def cut(self, start: int, stop: int) -> "Rows":
        """Rows start … stop − 1, in the same memory."""
        matrix: tuple[NDArray, ...] = (self.matrix[0][start:stop],)
        if len(self.matrix) == 3:
            indptr, indices, values = self.matrix
            span = slice(int(indptr[start]), int(indptr[stop]))
            matrix = (indptr[start : stop + 1] - indptr[start], indices[span], values[span])
        return Rows(matrix, self.labels[start:stop], self.dim, self, start)

    def take(self, rows: RowIndices) -> "Rows":
        """Some rows, in the given order, in memory of their own."""
        chosen = rows.astype(np.int64)
        if len(self.matrix) == 1:
            return Rows((self.matrix[0][chosen],), self.labels[chosen], self.dim)
        indptr, indices, values = self.matrix
        starts = indptr[chosen].astype(np.int64)
        lengths = indptr[chosen + 1].astype(np.int64) - starts
        ends = np.concatenate([[0], np.cumsum(lengths)])
        places = np.arange(ends[-1]) + np.repeat(starts - ends[:-1], lengths)
        return Rows((ends.astype(np.uint64), indices[places], values[places]), self.labels[chosen], self.dim)

    @cached_property
    def compact(self) -> tuple[NDArray, ...]:
        """The matrix as `kernels.shards` reads it fastest: one value a row (N,), if a row's are all equal and that makes fewer."""
        if len(self.matrix) == 1 or len(self) >= self.matrix[2].size:
            return self.matrix
        indptr, indices, values = self.matrix
        firsts = np.empty(len(self), values.dtype)
        for a, b in itertools.pairwise([0, *range(16, len(self), 2**16), len(self)]):  # in most sets the first rows already differ
            starts = indptr[a : b + 1].astype(np.int64)
            firsts[a:b] = values[np.minimum(starts[:-1], values.size - 1)]
            if not np.array_equal(np.repeat(firsts[a:b], np.diff(starts)), values[starts[0] : starts[-1]]):
                return self.matrix
        return indptr, indices, firsts

    def dense(self) -> Vector:
        """The samples as an array (N, d), for few or short rows."""
        samples = self.in_scipy()
        return samples.toarray().astype(np.float64, copy=False) if len(self.matrix) == 3 else samples

    def in_scipy(self) -> Any:
        """The samples (N, d): a SciPy matrix where they are sparse, else an array of float64."""
        if len(self.matrix) == 1:
            return self.matrix[0].astype(np.float64, copy=False)
        indptr, indices, values = self.matrix
        return scipy.sparse.csr_matrix((values, indices.astype(np.int64), indptr.astype(np.int64)), shape=(len(self), self.dim))

    def on_own_columns(self) -> "tuple[Indices, Rows]":
        """The increasing columns of which sparse rows hold an entry, and the rows with these columns alone; all of dense rows."""
        if len(self.matrix) == 1:
            return np.arange(self.dim, dtype=np.uint32), self
        indptr, indices, values = self.matrix
        held = distinct(indices)
        return held, Rows((indptr, np.searchsorted(held, indices).astype(np.uint32), values), self.labels, held.size)

    def pairs(self, model: str) -> tuple[Integers, Vector]:
        """The two features of each row (N, 2), users first, and the products of their values (N,); UserError if one has others."""
        if len(self.matrix) == 3:
            indptr, indices, values = self.matrix
            lengths = (indptr[1:] - indptr[:-1]).astype(np.int64)
        else:
            row, indices = np.nonzero(self.matrix[0])
            values, lengths = self.matrix[0][row, indices], np.bincount(row, minlength=len(self))
        if not np.all(lengths == 2):
            wrong = int(np.argmax(lengths != 2))
            raise UserError(f"{model}: a row has {lengths[wrong]} nonzero features; a rating has two, its user and its item")
        return indices.reshape(-1, 2).astype(np.int64), np.prod(values.reshape(-1, 2), axis=1, dtype=np.float64)
