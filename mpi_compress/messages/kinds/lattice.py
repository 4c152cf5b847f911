from dataclasses import dataclass
from math import ceil, inf, isfinite, log2, nan, sqrt

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core import arrays
from mpi_compress.kernels import vectors as kernels
from mpi_compress.messages.kinds.base import Compressed, Vector


@dataclass(eq=False)  # not frozen, as Sparse is not
class Lattice(Compressed):
    """v_j = Δ·integers[j] with Δ = 2σ/√d, of a vector with ‖v‖ ≤ M = radius (AIADE §2).  σ ≥ M: nothing is sent.

    Paper bits: ⌈1.05 d + d·log2((M + 2σ)/σ)⌉ (Lemma 2.1), M + 3σ for stochastic rounding, whose error can reach 2σ; + FPP where
    M is sent. A vector with NaN or infinity has a radius that is not finite, and all its coordinates are decoded as NaN.
    """

    integers: NDArray[np.int64]  # (d,)
    sigma: float  # σ; known to both ends
    radius: float  # M
    radius_sent: bool = False  # else both ends know it
    stochastic: bool = False

    @property
    def dim(self) -> int:
        return self.integers.size

    @property
    def step(self) -> float:
        """Δ; NaN if the radius is not finite."""
        return 2 * self.sigma / sqrt(self.integers.size) if isfinite(self.radius) else nan

    @property
    def elements(self) -> int:
        return 0 if self.sigma >= self.radius else self.integers.size

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        kernels.dense_add(self.integers, scale * self.step, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return lattice_bits(self.integers.size, self.sigma, self.radius, self.stochastic) + fpp * self.radius_sent

    def is_finite(self) -> bool:
        return isfinite(self.radius) and isfinite(self.sigma)

    def checked(self, dim: int) -> "Lattice":
        integers = arrays.whole(self.integers, (dim,), "integers").astype(np.int64, copy=False)
        return Lattice(integers, float(self.sigma), float(self.radius), self.radius_sent, self.stochastic)


def lattice_bits(dim: int, sigma: float, radius: float, stochastic: bool = False) -> float:
    """Lemma 2.1 of the AIADE paper: ⌈1.05 d + d·log2((M + 2σ)/σ)⌉; stochastic: M + 3σ; 0 where σ ≥ M."""
    if sigma >= radius:
        return 0
    if not sigma > 0 or not isfinite(radius):
        return inf
    return ceil(1.05 * dim + dim * log2(radius / sigma + (3 if stochastic else 2)))
