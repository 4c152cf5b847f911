from dataclasses import dataclass

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
        return Sparse(v.size, *select.largest_with_values(v, count_of(self.k, v.size)))

    def check(self, dim: int) -> None:
        count_of(self.k, dim)

    def delta(self, dim: int) -> float:
        return count_of(self.k, dim) / dim
