"""Whole vectors: as they are, clipped, or as points of a lattice."""

from math import inf, sqrt
from typing import Any, Literal

import numpy as np

from mpi_compress.core.fields import NotNegative, Positive
from mpi_compress.core.registry import fact
from mpi_compress.core.streams import Rounds
from mpi_compress.kernels import quantize
from mpi_compress.kernels.probabilities import sizes_of
from mpi_compress.messages.compressors.base import Compressor, compressors, evaluated
from mpi_compress.messages.kinds import Compressed, Dense, Lattice, SideInfo, Vector


@compressors.register("identity")
class Identity(Compressor):
    """C(v) = v: all d coordinates."""

    makes = Dense
    codec = "dense"

    def compress_rows(self, V: Vector, t: Rounds) -> Compressed:
        return Dense(V)

    def delta(self, dim: int) -> float:
        return 1.0

    def omega(self, dim: int) -> float:
        return 0.0


@compressors.register("clip")
class Clip(Compressor):
    """min(1, τ/‖v‖) v, and noise of N(0, σ²) a coordinate: no message says more of its worker's data than τ and σ allow.

    With ef21 it is Clip21, and with noise DP-Clip21 (Khirirat, Gorbunov, Horváth, Islamov, Karray, Richtárik 2023); with sgd it is
    clipped SGD of whole minibatches. It saves no bits, and is no contraction for all v: of ‖v‖ > τ it leaves (1 − τ/‖v‖)‖v‖.
    """

    threshold: Positive  # τ, the longest vector that is sent as it is
    noise: NotNegative = 0.0  # σ, the standard deviation of the noise of a coordinate
    makes = Dense
    codec = "dense"
    paper = "Clip21 (2023), Algorithm 1"

    def compress_rows(self, V: Vector, t: Rounds) -> Compressed:
        with np.errstate(all="ignore"):
            clipped = V * np.fmin(1.0, self.threshold / sizes_of(V).norm)[:, None]
        if self.noise:
            clipped += self.noise * np.array([t[i].rng.standard_normal(V.shape[1]) for i in range(len(t))])
        return Dense(clipped)


_LITTLE_MORE = 1 + 2**-10  # times σ: a radius above σ, in floats of 32 bits too


@compressors.register("lattice")
class LatticeQuantizer(Compressor):
    """Q(v, σ): each coordinate to the grid Δ = 2σ/√d (AIADE §2).

    To the nearest point, ‖v − Q(v)‖ ≤ σ (but for the rounding of floats, ‖v‖·2⁻⁵²), and 0 where ‖v‖ ≤ σ. Stochastic (its Algorithm
    3): to one of the two neighbours, unbiased, E‖v − Q(v)‖² ≤ σ² = ε on the same grid 2√(ε/d), and ‖v − Q(v)‖ ≤ 2σ always.

    The coder needs M ≥ ‖v‖: `range` says whether M is sent, or is a bound that both ends know, the `radius`. Algorithms set
    `sigma` and `radius` in every round.
    """

    sigma: Positive | None = None  # σ, the precision: ‖v − Q(v)‖ ≤ σ; left out: the algorithm sets it
    stochastic: bool = False  # true: to one of the two neighbours at random, which is unbiased; false: to the nearest point
    range: Literal["sent", "bound"] = "sent"  # M is in each message, or is a bound that both ends know
    radius: Positive | None = None  # M, the bound on ‖v‖ for range = "bound"; left out: the algorithm sets it
    makes = Lattice
    codec = "lattice"
    paper = "AIADE §2, Lemma 2.1"

    @fact
    def follows(self) -> Literal["", "range"]:
        return "range" if self.range == "bound" else ""

    def compress_rows(self, V: Vector, t: Rounds) -> Compressed:
        """Raises OverflowError where the grid is finer than floats."""
        σ, d, sizes = evaluated(self.sigma, "sigma = σ"), V.shape[1], sizes_of(V)
        norms, step = sizes.norm, 2 * σ / sqrt(d)
        if self.radius is None or self.range == "sent":
            radius = self._radius(np.where((norms > 0) & (norms < inf), np.nextafter(norms, inf), norms))
        else:
            radius = np.where(norms < inf, self._radius(self.radius), norms)
        sent = (radius < inf) & (σ < (radius if self.stochastic else np.minimum(norms, radius)))
        if (finer := sent & (sizes.peak >= quantize.MOST * step)).any():
            peak = sizes.peak[finer][0]
            raise OverflowError(f"a grid of {step:g} is finer than floats of magnitude {peak:g}; use a larger sigma")
        integers = np.zeros(V.shape, dtype=np.int64)
        if self.stochastic:
            quantize.round_at_random(V, np.full((len(V), 1), step), d, quantize.MOST, integers, t, sent)
        else:
            quantize.round_to_nearest(V, step, sent, integers)
        return Lattice(integers, σ, radius, self.range == "sent", self.stochastic)

    def _radius(self, radius: Any) -> Any:
        """M. Random rounding needs M > σ: a vector with M ≤ σ is sent as 0, which would be biased."""
        return np.maximum(radius, self.sigma * _LITTLE_MORE) if self.stochastic and self.sigma is not None else radius

    def known(self, dim: int) -> SideInfo:
        radius = None if self.range == "sent" or self.radius is None else float(self._radius(self.radius))
        return {"sigma": self.sigma, "radius": radius, "stochastic": self.stochastic}

    def check(self, dim: int) -> None:
        evaluated(self.sigma, "sigma = σ")
        if self.range == "bound" and self.radius is None:
            raise ValueError('range = "bound" needs radius = M (only some algorithms set it)')

    def variance(self, dim: int) -> float | None:
        return None if self.sigma is None else self.sigma**2

    def unbiased(self, dim: int) -> bool:
        return self.stochastic
