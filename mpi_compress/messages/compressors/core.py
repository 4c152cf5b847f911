import numpy as np

from mpi_compress.core.streams import Round
from mpi_compress.messages.compressors.base import Count, Sized, compressors, count_of
from mpi_compress.messages.kinds import Compressed, Known, Projections, Vector
from mpi_compress.messages.kinds.sketch import gaussians


@compressors.register("core")
class Core(Sized):
    """m numbers p_j = ⟨v, ξ_j⟩, whatever d is, read as (1/m) Σ p_j ξ_j (CORE: Yue, Zhao, Liu, Zhang, Fang 2023, Algorithm 1).

    The ξ_j are independent standard normal vectors, drawn in each round and shared by its workers. Then E C(v) = v and
    E‖C(v) − v‖² = ((d + 1)/m)‖v‖², so ω = (d + 1)/m. It is linear: the mean of workers' messages is that of their mean. A round
    draws m·d normal numbers, which takes longer than a sparse gradient.
    """

    m: Count = 1  # numbers sent: a count, or a share of d, "1%"
    size_field = "m"
    makes = Projections
    codec = "seeded"
    paper = "CORE (2023), Algorithm 1"

    def compress(self, v: Vector, t: Round) -> Compressed:
        m, seed = count_of(self.m, v.size), t.common_seed
        with np.errstate(invalid="ignore", over="ignore"):
            return Projections(v.size, (gaussians(v.size, seed, m) * v).sum(axis=1), seed)

    def known(self, dim: int) -> Known:
        return {"m": count_of(self.m, dim)}

    def check(self, dim: int) -> None:
        count_of(self.m, dim)

    def payload(self, dim: int, fpp: int) -> float:
        return fpp * count_of(self.m, dim)

    def omega(self, dim: int) -> float:
        return (dim + 1) / count_of(self.m, dim)
