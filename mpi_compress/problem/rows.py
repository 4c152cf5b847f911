from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpi_compress.kernels import rows as kernels
from mpi_compress.messages.kinds import Vector


@dataclass(frozen=True)
class Rows:
    """Samples a_j with their labels y_j, in memory."""

    matrix: tuple[NDArray, ...]  # (indptr, indices, values) in CSR form, or (values (N, d),)
    labels: Vector  # (N,)
    dim: int
    whole: "Rows | None" = None  # what these were cut from,
    start: int = 0  # and from which row on

    def __len__(self) -> int:
        return self.labels.size

    @property
    def nonzeros(self) -> int:
        """The entries that are held."""
        return self.matrix[-1].size

    def margins(self, x: Vector) -> Vector:
        """a_j·x (N,) of every sample, a new array."""
        out = np.empty(len(self))
        kernels.margins(self.matrix, x, out)
        return out

    def cut(self, start: int, stop: int) -> "Rows":
        """Rows start … stop − 1, in the same memory."""
        matrix: tuple[NDArray, ...]
        if len(self.matrix) == 1:
            matrix = (self.matrix[0][start:stop],)
        else:
            indptr, indices, values = self.matrix
            span = slice(int(indptr[start]), int(indptr[stop]))
            matrix = (indptr[start : stop + 1] - indptr[start], indices[span], values[span])
        return Rows(matrix, self.labels[start:stop], self.dim, self, start)

    def take(self, rows: NDArray[np.uint64]) -> "Rows":
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

    def dense(self) -> NDArray[np.float64]:
        """The samples as an array (N, d), for few or short rows."""
        if len(self.matrix) == 1:
            return self.matrix[0].astype(np.float64, copy=False)
        indptr, indices, values = self.matrix
        out = np.zeros((len(self), self.dim))
        out[np.repeat(np.arange(len(self)), (indptr[1:] - indptr[:-1]).astype(np.int64)), indices] = values
        return out
