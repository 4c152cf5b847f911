import numpy as np

from mpi_compress.core.fields import Share
from mpi_compress.core.registry import fact
from mpi_compress.core.streams import Round
from mpi_compress.kernels.vectors import taken
from mpi_compress.messages.compressors.base import Compressor, compressors
from mpi_compress.messages.kinds import Compressed, Drawn, Known, Sparse, Vector, uniform_indices


@compressors.register("unisp")
class UniSp(Compressor):
    """(g_j/κ)·Bernoulli(κ), the same κ for all coordinates (GSpar §4, their baseline).  Unbiased with ω = 1/κ − 1.

    With `shared_seed` a message holds a seed of 64 bits, from which its receiver draws the indices again, and the values.
    """

    kappa: Share  # κ, the probability that a coordinate is sent
    shared_seed: bool = False  # true: a message holds a seed of 64 bits in place of the indices
    paper = "GSpar §4"
    draws_indices = True

    @fact
    def makes(self) -> type[Compressed]:
        return Drawn if self.shared_seed else Sparse

    def compress(self, v: Vector, t: Round) -> Compressed:
        if self.shared_seed:
            drawn = Drawn(v.size, int(t.rng.integers(2**64, dtype=np.uint64)), self.kappa, np.empty(0))
            return Drawn(v.size, drawn.seed, self.kappa, v[drawn.indices] / self.kappa)
        indices = uniform_indices(v.size, self.kappa, t.rng)
        return Sparse(v.size, indices, taken(v, indices) / self.kappa)

    def known(self, dim: int) -> Known:
        return {"kappa": self.kappa} if self.shared_seed else {}

    def omega(self, dim: int) -> float:
        return 1 / self.kappa - 1
