from dataclasses import dataclass

from numpy.typing import NDArray

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
