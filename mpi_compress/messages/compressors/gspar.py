from typing import Annotated

import numpy as np

from mpi_compress.core.fields import NotNegative, Share, within
from mpi_compress.core.streams import Round
from mpi_compress.kernels import probabilities
from mpi_compress.messages.compressors.base import Compressor, compressors, one_of
from mpi_compress.messages.kinds import Compressed, Hybrid, Vector


@compressors.register("gspar")
class GSpar(Compressor):
    """(g_j/p_j)·Bernoulli(p_j), p_j = min(1, λ|g_j|); those with p_j = 1 are sent as they are, the others as ±1/λ (GSpar §2).

    epsilon: Algorithm 2, the fewest Σ p_j with Σ g_j²/p_j ≤ (1 + ε)‖g‖², so ω = ε: the smallest k that meets eq. 11 (the printed
    algorithm says 10), λ = Σ_{j>k}|g_(j)| / (ε‖g‖² + Σ_{j>k}g_(j)²).
    kappa: Algorithm 3, Σ p_j → κd from below in `passes` rounds, p ← min(cp, 1) over those with p ≠ 1. Every c ≥ 1, so
    ω ≤ 1/κ; with many rounds it is the compressor `stochastic` with k = κd.
    """

    epsilon: NotNegative | None = None  # ε, the variance: E‖Q(g)‖² ≤ (1 + ε)‖g‖² (Algorithm 2); left out: kappa is given
    kappa: Share | None = None  # κ, the most that is sent in the mean, as a share of d (Algorithm 3); left out: epsilon is given
    passes: Annotated[int, within("[0, inf)")] = 2  # steps of Algorithm 3, which approach the share kappa from below
    makes = Hybrid
    codec = "gspar-hybrid"
    paper = "GSpar Algorithms 2 and 3"

    def __post_init__(self) -> None:
        one_of(epsilon=self.epsilon, kappa=self.kappa)
        super().__post_init__()

    def compress(self, v: Vector, t: Round) -> Compressed:
        size = probabilities.size_of(v)
        found, certain, m = probabilities.draw(v, size, self.level(v, size), t.rng)
        indices, drawn = found[certain], found[~certain]
        return Hybrid(v.size, indices, v[indices].astype(np.float64, copy=False), drawn, v[drawn] < 0, m)

    def level(self, v: Vector, size: probabilities.VectorSize) -> float:
        """1/λ, times the scale of `size`."""
        if self.epsilon is not None:
            return probabilities.level_of_variance(v, size, self.epsilon)
        assert self.kappa is not None
        return probabilities.level_of_budget(v, size, self.kappa * v.size, self.passes)

    def omega(self, dim: int) -> float:
        if self.epsilon is not None:
            return self.epsilon
        assert self.kappa is not None
        return 1 / self.kappa
