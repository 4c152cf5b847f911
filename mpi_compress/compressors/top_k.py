from dataclasses import dataclass

import numpy as np

from mpi_compress.compressed import Compressed, Sparse, Vector
from mpi_compress.compressors.base import Compressor, Count, compressors, count_of
from mpi_compress.kernels import select
from mpi_compress.streams import Round


@compressors.register("top-k")
@dataclass(frozen=True)
class TopK(Compressor):
    """The k coordinates of largest magnitude, ties to the lowest index (CAT eq. 2).  Contractive with δ = k/d (CAT Lemma 2)."""

    k: Count | None = None
    paper = "CAT eq. 2"

    def compress(self, v: Vector, t: Round) -> Compressed:
        indices = select.largest(v, count_of(self.k, v.size))
        return sparse_at(v, indices)

    def check(self, dim: int) -> None:
        count_of(self.k, dim)

    def delta(self, dim: int) -> float:
        return count_of(self.k, dim) / dim


def sparse_at(v: Vector, indices: select.Indices) -> Sparse:
    """v (d,) at increasing `indices`, the others 0."""
    values = np.empty(indices.size)
    select.take(v, indices, values)
    return Sparse(v.size, indices, values)
