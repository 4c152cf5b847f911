"""Coordinates that are drawn at random."""

from typing import Annotated

import numpy as np

from mpi_compress.core.fields import NotNegative, Share, within
from mpi_compress.core.registry import fact
from mpi_compress.core.streams import Rounds
from mpi_compress.kernels import probabilities
from mpi_compress.messages.compressors.base import Compressor, Count, OfK, compressors, count_of, one_of
from mpi_compress.messages.fields import equal_ends
from mpi_compress.messages.kinds import Compressed, Drawn, Hybrid, SideInfo, Sparse, Vector, uniform_indices


@compressors.register("random-k")
class RandomK(OfK):
    """k coordinates drawn uniformly without replacement, each times d/k where `scaled`.

    Scaled it is unbiased with ω = d/k − 1. Unscaled, as error feedback needs it, it is contractive in the mean with δ = k/d.
    """

    k: Count  # k, how many coordinates are sent: a count or a share of d, "0.2%"
    scaled: bool = True  # true: values times d/k, which is unbiased; false: values as they are, as error feedback needs them
    paper = "HT §3"
    draws_indices = True

    def compress_rows(self, V: Vector, t: Rounds) -> Compressed:
        d = V.shape[1]
        k = count_of(self.k, d)
        drawn = [t[i].rng.choice(d, size=k, replace=False, shuffle=False) for i in range(len(t))]
        at = np.sort(drawn, axis=1)
        values = np.take_along_axis(V, at, axis=1).ravel()
        return Sparse(d, at.astype(np.uint32).ravel(), values * (d / k) if self.scaled else values, equal_ends(len(V), k))

    def delta(self, dim: int) -> float | None:
        return super().delta(dim) if self.scaled else count_of(self.k, dim) / dim

    def omega(self, dim: int) -> float | None:
        return dim / count_of(self.k, dim) - 1 if self.scaled else None


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

    def compress_rows(self, V: Vector, t: Rounds) -> Compressed:
        d = V.shape[1]
        if self.shared_seed:
            seeds = t.words(1)[:, 0]
            return Drawn(d, seeds, self.kappa, np.empty(0)).filled(lambda row, indices: V[row, indices] / self.kappa)
        sets = [uniform_indices(d, self.kappa, t[i].rng) for i in range(len(t))]
        values = [v[indices] for v, indices in zip(V, sets, strict=True)]
        return Sparse(d, np.concatenate(sets), np.concatenate(values) / self.kappa, np.cumsum([each.size for each in sets]))

    def known(self, dim: int) -> SideInfo:
        return {"kappa": self.kappa} if self.shared_seed else {}

    def omega(self, dim: int) -> float:
        return 1 / self.kappa - 1


@compressors.register("stochastic")
class Stochastic(OfK):
    """(g_j/p_j)·Bernoulli(p_j), p_j = min(1, λ|g_j|) with Σ p_j = T = k (CAT eq. 4): the p of least variance for that sum.

    T is clamped to the nonzeros of g, which are then sent as they are. Unbiased with ω = d/k − 1, which equal magnitudes attain.
    """

    k: Count | None = None  # k, how many are sent in the mean: a count or a share of d, "0.2%"; left out: the algorithm sets it
    paper = "CAT eq. 4"

    def compress_rows(self, V: Vector, t: Rounds) -> Compressed:
        d, sizes = V.shape[1], probabilities.sizes_of(V)
        drawn = probabilities.draw(V, sizes, probabilities.levels_of_budget(V, sizes, count_of(self.k, d)), t)
        return Sparse(d, drawn.indices, drawn.weighted, drawn.ends)

    def omega(self, dim: int) -> float:
        return dim / count_of(self.k, dim) - 1


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

    def compress_rows(self, V: Vector, t: Rounds) -> Compressed:
        sizes = probabilities.sizes_of(V)
        indices, values, certain, ends, level = probabilities.draw(V, sizes, self.levels(V, sizes), t)
        own_ends = np.append(0, np.cumsum(certain))[ends]
        own, others = (indices[certain], values[certain]), (indices[~certain], values[~certain] < 0)
        return Hybrid(V.shape[1], *own, *others, level, own_ends, ends - own_ends)

    def levels(self, V: Vector, sizes: probabilities.Sizes) -> Vector:
        """1/λ of each row, times its scale of `sizes`."""
        if self.kappa:
            return probabilities.levels_of_budget(V, sizes, self.kappa * V.shape[1], self.passes)
        return probabilities.levels_of_variance(V, sizes, self.epsilon or 0.0)

    def omega(self, dim: int) -> float:
        return 1 / self.kappa if self.kappa else self.epsilon or 0.0
