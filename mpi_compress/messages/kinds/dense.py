"""Kinds that hold all coordinates: floats, integers times scales, signs, points of a lattice; and a number beside a vector."""

from dataclasses import dataclass
from math import ceil, inf, isfinite, log2, nan, sqrt

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core import arrays
from mpi_compress.kernels import elias
from mpi_compress.kernels import vectors as kernels
from mpi_compress.messages.kinds.base import Compressed, Vector

_LARGEST_LEVEL = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Dense(Compressed):
    """All coordinates.  Paper bits: d·FPP."""

    values: Vector  # (d,)

    @property
    def dim(self) -> int:
        return self.values.size

    @property
    def elements(self) -> int:
        return self.values.size

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        kernels.dense_add(self.values, scale, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return self.values.size * fpp

    def is_finite(self) -> bool:
        return bool(kernels.all_finite(self.values))

    def checked(self, dim: int) -> "Dense":
        return Dense(arrays.floats(self.values, (dim,), "values"))


@dataclass(frozen=True, eq=False)
class Levels(Compressed):
    """v_j = scales[⌊j / bucket⌋]·levels[j]: integers on a grid for each bucket of coordinates (QSGD sends ‖v‖/s as scale).

    Paper bits: 32 for each scale + the Elias code of the levels, the shorter of the two of QSGD's paper (Alistarh et al. 2017,
    §3.2 and its appendix): omega code of the gap to each nonzero level, its sign, omega code of its size; or for every
    coordinate its sign and the omega code of its size + 1.
    """

    levels: NDArray[np.signedinteger]  # (d,), int8 or int32
    scales: Vector  # (⌈d / bucket⌉,)
    bucket: int  # coordinates that share a scale

    @property
    def dim(self) -> int:
        return self.levels.size

    @property
    def elements(self) -> int:
        return int(np.count_nonzero(self.levels))

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        kernels.levels_add(self.levels, self.scales, self.bucket, scale, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        at, sparse, dense = elias.levels_lengths(self.levels, True)
        return 32 * self.scales.size + min(sparse + at.size, dense + self.levels.size)  # dense: every level has a sign, 0 too

    def is_finite(self) -> bool:
        return bool(kernels.all_finite(self.scales))

    def checked(self, dim: int) -> "Levels":
        if not self.bucket >= 1:
            raise ValueError(f"bucket = {self.bucket} must be at least 1")
        levels = arrays.whole(self.levels, (dim,), "levels", -_LARGEST_LEVEL, _LARGEST_LEVEL)
        short = levels.dtype == np.int8
        scales = arrays.floats(self.scales, (-(-dim // self.bucket),), "scales")
        return Levels(levels if short else levels.astype(np.int32, copy=False), scales, self.bucket)


@dataclass(frozen=True, eq=False)
class Ternary(Compressed):
    """v_j = magnitude·signs[j], signs −1, 0 or 1.  Paper bits: FPP + d·log2 3 (TernGrad, Wen et al. 2017, §3)."""

    signs: NDArray[np.int8]  # (d,)
    magnitude: float

    @property
    def dim(self) -> int:
        return self.signs.size

    @property
    def elements(self) -> int:
        return int(np.count_nonzero(self.signs))

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        kernels.integers_add(self.signs, scale * self.magnitude, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return fpp + self.signs.size * log2(3)

    def is_finite(self) -> bool:
        return isfinite(self.magnitude)

    def checked(self, dim: int) -> "Ternary":
        signs = arrays.whole(self.signs, (dim,), "signs", -1, 1)
        return Ternary(signs.astype(np.int8, copy=False), arrays.number(self.magnitude, "magnitude"))


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
        kernels.integers_add(self.integers, scale * self.step, out)

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


@dataclass(frozen=True)
class WithScalar(Compressed):
    """A number beside a vector, in one message.  Paper bits: the vector's + FPP."""

    scalar: float
    vector: Compressed

    @property
    def dim(self) -> int:
        return self.vector.dim

    @property
    def elements(self) -> int:
        return self.vector.elements

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        self.vector.add_to(out, scale)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return self.vector.paper_bits(fpp, indices_counted) + fpp

    def is_finite(self) -> bool:
        return isfinite(self.scalar) and self.vector.is_finite()

    def checked(self, dim: int) -> "WithScalar":
        return WithScalar(self.scalar, self.vector.checked(dim))
