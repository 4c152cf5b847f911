import numpy as np

from mpi_compress.core.streams import Round
from mpi_compress.kernels import probabilities
from mpi_compress.messages.compressors.base import Count, OfK, compressors, count_of
from mpi_compress.messages.kinds import Compressed, Sparse, Vector


@compressors.register("stochastic")
class Stochastic(OfK):
    """(g_j/p_j)·Bernoulli(p_j), p_j = min(1, λ|g_j|) with Σ p_j = T = k (CAT eq. 4): the p of least variance for that sum.

    T is clamped to the nonzeros of g, which are then sent as they are. Unbiased with ω = d/k − 1, which equal magnitudes attain.
    """

    k: Count | None = None  # k, how many are sent in the mean: a count or a share of d, "0.2%"; left out: the algorithm sets it
    paper = "CAT eq. 4"

    def compress(self, v: Vector, t: Round) -> Compressed:
        size = probabilities.size_of(v)
        level = probabilities.level_of_budget(v, size, count_of(self.k, v.size))
        indices, certain, m = probabilities.draw(v, size, level, t.rng)
        values = np.empty(indices.size)
        probabilities.values_at(v, indices, certain, m, values)
        return Sparse(v.size, indices, values)

    def omega(self, dim: int) -> float:
        return dim / count_of(self.k, dim) - 1
