"""Whole vectors: as they are, clipped, or as points of a lattice."""

from math import inf, nextafter
from typing import Literal

import numpy as np

from mpi_compress.core.fields import NotNegative, Positive
from mpi_compress.core.registry import fact
from mpi_compress.core.streams import Round
from mpi_compress.kernels import quantize
from mpi_compress.kernels.probabilities import size_of
from mpi_compress.messages.compressors.base import Compressor, compressors
from mpi_compress.messages.kinds import Compressed, Dense, Known, Lattice, Vector


@compressors.register("identity")
class Identity(Compressor):
    """C(v) = v: all d coordinates."""

    makes = Dense
    codec = "dense"

    def compress(self, v: Vector, t: Round) -> Compressed:
        return Dense(v)

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

    def compress(self, v: Vector, t: Round) -> Compressed:
        norm = size_of(v).norm
        with np.errstate(invalid="ignore"):
            clipped = np.asarray(v, np.float64) * (min(1.0, self.threshold / norm) if norm else 1.0)
        return Dense(clipped + self.noise * t.rng.standard_normal(v.size) if self.noise else clipped)


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

    def compress(self, v: Vector, t: Round) -> Compressed:
        """Raises OverflowError where the grid is finer than floats."""
        assert self.sigma is not None
        size = size_of(v)
        norm = size.norm
        if self.radius is None or self.range == "sent":
            radius = self._radius(nextafter(norm, inf) if 0 < norm < inf else norm)
        else:
            radius = self._radius(self.radius) if norm < inf else norm
        integers = np.zeros(v.size, dtype=np.int64)
        out = Lattice(integers, self.sigma, radius, self.range == "sent", self.stochastic)
        if not radius < inf or self.sigma >= (radius if self.stochastic else min(norm, radius)):
            return out
        if size.peak >= quantize.MOST * out.step:
            raise OverflowError(f"a grid of {out.step:g} is finer than floats of magnitude {size.peak:g}; use a larger sigma")
        if self.stochastic:
            quantize.round_at_random(v, np.array([out.step]), v.size, quantize.MOST, integers, t.rng)
        else:
            quantize.round_to_nearest(np.ascontiguousarray(v, dtype=np.float64), out.step, integers)
        return out

    def _radius(self, radius: float) -> float:
        """M. Random rounding needs M > σ: a vector with M ≤ σ is sent as 0, which would be biased."""
        return max(radius, self.sigma * _LITTLE_MORE) if self.stochastic and self.sigma is not None else radius

    def known(self, dim: int) -> Known:
        radius = None if self.range == "sent" or self.radius is None else self._radius(self.radius)
        return {"sigma": self.sigma, "radius": radius, "stochastic": self.stochastic}

    def check(self, dim: int) -> None:
        if self.sigma is None:
            raise ValueError("needs sigma = σ (only some algorithms set it)")
        if self.range == "bound" and self.radius is None:
            raise ValueError('range = "bound" needs radius = M (only some algorithms set it)')

    def variance(self, dim: int) -> float | None:
        return None if self.sigma is None else self.sigma**2

    def unbiased(self, dim: int) -> bool:
        return self.stochastic
