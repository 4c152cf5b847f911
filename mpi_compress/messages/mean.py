"""Means of what workers sent, in worker order."""

from collections.abc import Sequence

import numpy as np

from mpi_compress.core.errors import UserError
from mpi_compress.kernels import vectors as kernels
from mpi_compress.messages.kinds import Compressed, Dense, Sparse, no_coordinates


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
        dim = parts[0].dim
        if any(part.dim != dim for part in parts):
            lengths = ", ".join(str(size) for size in sorted({part.dim for part in parts}))
            raise UserError(f"mean: the messages have {lengths} coordinates; only vectors of one length have a mean")
        if dim != self.dim:
            self._make_room(dim)
        sparse = _nonempty(parts)
        if sparse is not None and is_few(held := sum(p.indices.size for p in sparse), self.dim):
            return self._sum_of(sparse, float(n)) if held else no_coordinates(self.dim)
        total = np.zeros(self.dim)
        for part in parts:
            part.add_to(total)
        total /= n
        return Dense(total)

    def _sum_of(self, parts: Sequence[Sparse], divisor: float) -> Sparse:
        indices, values = np.concatenate([p.indices for p in parts]), np.concatenate([p.values for p in parts])
        indices = np.sort(kernels.scatter_add_noting(indices, values, self._total, self._seen))
        values = np.empty(indices.size)
        kernels.take_and_clear(indices, divisor, self._total, self._seen, values)
        return Sparse(self.dim, indices, values)


def is_few(held: int, dim: int) -> bool:
    """True if the sum of sparse vectors (dim,) that hold so many coordinates, of each again, is sparse."""
    return 4 * held <= 3 * dim


def _nonempty(parts: Sequence[Compressed]) -> list[Sparse] | None:
    """The parts with any coordinates, as sparse vectors; None if some part is not sparse."""
    found: list[Sparse] = []
    before = sparse = None
    for part in parts:
        if part is not before:  # workers of one process that send nothing share one message
            before, sparse = part, part.sparse()
        if sparse is None:
            return None
        if sparse.indices.size:
            found.append(sparse)
    return found
