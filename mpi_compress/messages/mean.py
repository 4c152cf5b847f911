"""Means of what workers sent, in worker order."""

from collections.abc import Sequence

import numpy as np

from mpi_compress.core.errors import UserError
from mpi_compress.kernels import vectors as kernels
from mpi_compress.messages.kinds import Compressed, Dense, Sparse, no_coordinates, stacked
from mpi_compress.messages.link import Arrived


class Averager:
    """Takes means of compressed vectors, added in the order given, whatever ranks they came from. The mean of sparse vectors is
    sparse: it holds the union of their indices. Its scratch space (dim,) is kept from call to call."""

    def __init__(self, dim: int):
        self._make_room(dim)

    def _make_room(self, dim: int) -> None:
        self.dim, self._total, self._seen = dim, np.zeros(dim), np.zeros(dim, dtype=np.bool_)

    def mean(self, parts: Sequence[Compressed], n: int | None = None) -> Compressed:
        """(1/n) Σ parts of vectors of one length, n = len(parts) if not given; UserError if their lengths differ."""
        n = n or len(parts)
        rows = parts.content if isinstance(parts, Arrived) else parts if isinstance(parts, Compressed) else _rows_of(parts)
        if rows.dim != self.dim:
            self._make_room(rows.dim)
        sparse = rows.sparse()
        if sparse is not None and 4 * sparse.indices.size <= 3 * self.dim:  # else the union may hold nearly all
            return self._sum_of(sparse, float(n)) if sparse.indices.size else no_coordinates(self.dim)
        total = np.zeros((1, self.dim))
        rows.add_to(total, 1.0, np.zeros(len(rows), dtype=np.int64))  # type: ignore[call-arg]
        total /= n
        return Dense(total[0])

    def _sum_of(self, rows: Sparse, divisor: float) -> Sparse:
        indices = np.sort(kernels.scatter_add_noting(rows.indices, rows.values, self._total, self._seen))
        return Sparse(self.dim, indices, kernels.take_and_clear(indices, divisor, self._total, self._seen))


def _rows_of(parts: Sequence[Compressed]) -> Compressed:
    if len({part.dim for part in parts}) > 1:
        lengths = ", ".join(str(size) for size in sorted({part.dim for part in parts}))
        raise UserError(f"mean: the messages have {lengths} coordinates; only vectors of one length have a mean")
    return stacked(parts)
