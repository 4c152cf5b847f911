import numpy as np

from mpi_compress.core.streams import Round
from mpi_compress.kernels.vectors import taken
from mpi_compress.messages.compressors.base import Count, OfK, compressors, count_of
from mpi_compress.messages.kinds import Compressed, Sparse, Vector


@compressors.register("random-k")
class RandomK(OfK):
    """k coordinates drawn uniformly without replacement, each times d/k where `scaled`.

    Scaled it is unbiased with ω = d/k − 1. Unscaled, as error feedback needs it, it is contractive in the mean with δ = k/d.
    """

    k: Count  # k, how many coordinates are sent: a count or a share of d, "0.2%"
    scaled: bool = True  # true: values times d/k, which is unbiased; false: values as they are, as error feedback needs them
    paper = "HT §3"
    draws_indices = True

    def compress(self, v: Vector, t: Round) -> Compressed:
        k = count_of(self.k, v.size)
        indices = np.sort(t.rng.choice(v.size, size=k, replace=False, shuffle=False)).astype(np.uint32)
        values = taken(v, indices)
        return Sparse(v.size, indices, values * (v.size / k) if self.scaled else values)

    def delta(self, dim: int) -> float | None:
        return super().delta(dim) if self.scaled else count_of(self.k, dim) / dim

    def omega(self, dim: int) -> float | None:
        return dim / count_of(self.k, dim) - 1 if self.scaled else None
