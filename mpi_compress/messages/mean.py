"""Means over workers of what they sent."""

from collections.abc import Sequence

import numpy as np

from mpi_compress.kernels import vectors as kernels
from mpi_compress.messages.kinds import Compressed, Dense, Sparse, no_coordinates

_FEW = 16  # coordinates


class Averager:
    """Means of compressed vectors, added in the order given, whatever ranks they came from.

    The mean of sparse vectors is sparse: it holds the union of their indices and costs what they hold. One averager keeps its
    scratch space (d,) from round to round.
    """

    def __init__(self, dim: int):
        self.dim = dim
        self._total = np.zeros(dim)
        self._seen = np.zeros(dim, dtype=np.bool_)

    def mean(self, parts: Sequence[Compressed]) -> Compressed:
        """(1/n) Σ parts, for n = len(parts)."""
        telling = _telling(parts)
        if telling is not None and 4 * (held := sum([p.indices.size for p in telling])) <= 3 * self.dim:
            return _sum_of_few(self.dim, telling, len(parts)) if held <= _FEW else self._sum_of(telling, float(len(parts)))
        total = np.zeros(self.dim)
        for part in parts:
            part.add_to(total)
        total /= len(parts)
        return Dense(total)

    def _sum_of(self, parts: Sequence[Sparse], divisor: float) -> Sparse:
        """(1/divisor) Σ parts."""
        indices, values = np.concatenate([p.indices for p in parts]), np.concatenate([p.values for p in parts])
        indices = np.sort(kernels.scatter_add_noting(indices, values, self._total, self._seen))
        values = np.empty(indices.size)
        kernels.take_and_clear(indices, divisor, self._total, self._seen, values)
        return Sparse(self.dim, indices, values)


def _telling(parts: Sequence[Compressed]) -> list[Sparse] | None:
    """Those that hold something, where all are sparse."""
    telling: list[Sparse] = []
    before = sparse = None
    for part in parts:
        if part is not before:  # silent workers hosted together share one
            before, sparse = part, part.sparse()
        if sparse is None:
            return None
        if sparse.indices.size:
            telling.append(sparse)
    return telling


def _sum_of_few(dim: int, parts: Sequence[Sparse], divisor: int) -> Sparse:
    """(1/divisor) Σ parts, added one by one: the same numbers, sooner than arrays are set up."""
    sums: dict[int, float] = {}
    for part in parts:
        for i, value in zip(part.indices.tolist(), part.values.tolist(), strict=True):
            sums[i] = sums.get(i, 0.0) + value
    if not sums:
        return no_coordinates(dim)
    indices = sorted(sums)
    return Sparse(dim, np.array(indices, dtype=np.uint32), np.array([sums[i] / divisor for i in indices]))
