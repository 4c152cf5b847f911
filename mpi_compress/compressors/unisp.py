from dataclasses import dataclass

import numpy as np

from mpi_compress.compressed import Compressed, Vector
from mpi_compress.compressors.base import Compressor, compressors
from mpi_compress.compressors.top_k import sparse_at
from mpi_compress.streams import Round


@compressors.register("unisp")
@dataclass(frozen=True)
class UniSp(Compressor):
    """(g_j/κ)·Bernoulli(κ), the same κ for all coordinates (GSpar §4, their baseline).  Unbiased with ω = 1/κ − 1."""

    kappa: float  # κ
    paper = "GSpar §4"

    def __post_init__(self) -> None:
        if not 0 < self.kappa <= 1:
            raise ValueError(f"kappa = {self.kappa:g} was given; it should be a share above 0 and up to 1")

    def compress(self, v: Vector, t: Round) -> Compressed:
        expected = self.kappa * v.size
        many = int(expected + 6 * expected**0.5) + 16  # gaps between chosen ones, nearly always enough in one draw
        at = np.cumsum(t.rng.geometric(self.kappa, many)) - 1
        while at[-1] < v.size:
            at = np.append(at, at[-1] + np.cumsum(t.rng.geometric(self.kappa, many)))
        chosen = sparse_at(v, at[: np.searchsorted(at, v.size)].astype(np.uint32))
        np.divide(chosen.values, self.kappa, out=chosen.values)
        return chosen

    def omega(self, dim: int) -> float:
        return 1 / self.kappa - 1
