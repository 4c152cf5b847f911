"""What a compressor makes of a vector, and what a receiver decodes: it costs what it holds, not d."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from math import ceil, inf, isfinite, log2, nan, sqrt

import numpy as np
from numpy.typing import NDArray

from mpi_compress.kernels import adding, elias, select
from mpi_compress.kernels import vectors as kernels

Vector = NDArray[np.float64]
Indices = NDArray[np.uint32]
Flags = NDArray[np.bool_]


def index_bits(dim: int) -> int:
    """⌈log2 d⌉, the width of a field that holds any index of a vector with d coordinates."""
    return (dim - 1).bit_length()


class Compressed(ABC):
    """A compressed vector of `dim` coordinates."""

    dim: int

    @property
    @abstractmethod
    def elements(self) -> int:
        """Coordinates sent."""

    @abstractmethod
    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        """out += scale · this, out (dim,)."""

    @abstractmethod
    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        """The paper's formula for this kind of message; `fpp` is the floating-point precision in bits."""

    @abstractmethod
    def is_finite(self) -> bool:
        """Whether every value is a finite number."""

    def squared_norm(self) -> float:
        """‖this‖²."""
        held = self.sparse()
        return kernels.norm(self.dense() if held is None else held.values) ** 2

    def sparse(self) -> "Sparse | None":
        """The same as indices and values, where that is how it is held."""
        return None

    def dense(self) -> Vector:
        """This as a new array (dim,)."""
        out = np.zeros(self.dim)
        self.add_to(out)
        return out


@dataclass(frozen=True, eq=False)
class Dense(Compressed):
    """All coordinates.  Paper bits: d·FPP."""

    values: Vector  # (d,)

    @property
    def dim(self) -> int:  # type: ignore[override]
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


@dataclass(eq=False)  # not frozen: that would take a quarter of the time to write and read a short message
class Sparse(Compressed):
    """T coordinates with their values, the others 0.  Paper bits: T(⌈log2 d⌉ + FPP), CAT eq. 5."""

    dim: int
    indices: Indices  # (T,) increasing
    values: Vector  # (T,)
    seen_finite: bool = False  # whether all values are known to be finite

    @property
    def elements(self) -> int:
        return self.indices.size

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        kernels.scatter_add(self.indices, self.values, scale, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return self.indices.size * self.bits_per_element(self.dim, fpp, indices_counted)

    def sparse(self) -> "Sparse":
        return self

    @staticmethod
    def bits_per_element(dim: int, fpp: int, indices_counted: bool = True) -> int:
        return index_bits(dim) * indices_counted + fpp

    def is_finite(self) -> bool:
        return self.seen_finite or not self.values.size or bool(kernels.all_finite(self.values))


@dataclass(eq=False)
class SparseRows:
    """m sparse vectors of `dim` coordinates, one after the other: what is compressed, written and read by one call."""

    dim: int
    indices: Indices  # (T,) of all, those of each increasing
    values: Vector  # (T,)
    ends: NDArray[np.int64]  # (m,) where each one's end

    def __iter__(self) -> Iterator[Sparse]:
        finite, start = bool(kernels.all_finite(self.values)), 0
        for end in self.ends.tolist():
            yield Sparse(self.dim, self.indices[start:end], self.values[start:end], finite)
            start = end


@dataclass(frozen=True, eq=False)
class Drawn(Compressed):
    """Values at coordinates that sender and receiver draw from one seed, each with chance κ.  Paper bits: T·FPP."""

    dim: int
    seed: int  # of 64 bits
    kappa: float  # κ; known to both ends
    values: Vector  # (T,)

    @cached_property
    def indices(self) -> Indices:
        """(T,) increasing."""
        return uniform_indices(self.dim, self.kappa, np.random.Generator(np.random.Philox(key=self.seed)))

    @property
    def elements(self) -> int:
        return self.values.size

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        kernels.scatter_add(self.indices, self.values, scale, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return self.values.size * fpp

    def is_finite(self) -> bool:
        return bool(kernels.all_finite(self.values))

    def sparse(self) -> Sparse:
        return Sparse(self.dim, self.indices, self.values)


def uniform_indices(dim: int, kappa: float, rng: np.random.Generator) -> Indices:
    """Increasing indices below dim, each drawn with chance κ: gaps between them are geometric."""
    expected = kappa * dim
    many = int(expected + 6 * expected**0.5) + 16  # nearly always enough in one draw
    at = np.cumsum(_gaps(dim, kappa, many, rng)) - 1
    while at[-1] < dim:
        at = np.append(at, at[-1] + np.cumsum(_gaps(dim, kappa, many, rng)))
    return at[: np.searchsorted(at, dim)].astype(np.uint32)


def _gaps(dim: int, kappa: float, many: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """`many` geometric numbers; those beyond dim, which with a tiny κ do not fit 64 bits, are dim + 1, so that sums of them do."""
    with np.errstate(over="ignore", invalid="ignore"):
        drawn = rng.geometric(kappa, many)
    return np.where((drawn < 1) | (drawn > dim), dim + 1, drawn)


@cache
def no_coordinates(dim: int) -> Sparse:
    """The vector 0 (dim,)."""
    return Sparse(dim, np.empty(0, dtype=np.uint32), np.empty(0))


@dataclass(frozen=True, eq=False)
class SignSparse(Compressed):
    """T coordinates ±magnitude, the others 0.  Paper bits: FPP + T⌈log2 d⌉, CAT eq. 5, which forgets the T sign bits."""

    dim: int
    indices: Indices  # (T,) increasing
    negative: Flags  # (T,) where the value is −magnitude
    magnitude: float

    @classmethod
    def at(cls, v: Vector, indices: Indices, magnitude: float) -> "SignSparse":
        """magnitude·sign(v_j) at those increasing `indices` where v (d,) is not 0."""
        values = np.empty(indices.size)
        select.take(v, indices, values)
        if not np.all(values):
            indices, values = indices[values != 0], values[values != 0]
        return cls(v.size, indices, values < 0, magnitude)

    @property
    def elements(self) -> int:
        return self.indices.size

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        adding.signs_add(self.indices, self.negative, scale * self.magnitude, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return fpp + self.indices.size * index_bits(self.dim) * indices_counted

    def is_finite(self) -> bool:
        return isfinite(self.magnitude)

    def sparse(self) -> Sparse:
        return Sparse(self.dim, self.indices, np.where(self.negative, -self.magnitude, self.magnitude))


@dataclass(frozen=True, eq=False)
class Hybrid(Compressed):
    """s coordinates with their values and r others, none of them the same, with the one ±magnitude (GSpar §2.3: Q_A and Q_B).

    Paper bits, b = FPP: min(s(b + log2 d) + r·log2 d + b, s·b + 2d + b), GSpar §2.3, which forgets the r sign bits.
    """

    dim: int
    indices: Indices  # (s,) increasing
    values: Vector  # (s,)
    sign_indices: Indices  # (r,) increasing
    negative: Flags  # (r,) where the value is −magnitude
    magnitude: float

    @property
    def elements(self) -> int:
        return self.indices.size + self.sign_indices.size

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        kernels.scatter_add(self.indices, self.values, scale, out)
        adding.signs_add(self.sign_indices, self.negative, scale * self.magnitude, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        indices = self.elements * log2(self.dim) if indices_counted else 0.0
        return self.indices.size * fpp + fpp + min(indices, 2 * self.dim)

    def is_finite(self) -> bool:
        return isfinite(self.magnitude) and bool(kernels.all_finite(self.values))

    def sparse(self) -> Sparse:
        indices = np.empty(self.elements, dtype=np.uint32)
        values = np.empty(self.elements)
        adding.merge(self.indices, self.values, self.sign_indices, self.negative, self.magnitude, indices, values)
        return Sparse(self.dim, indices, values)

    def squared_norm(self) -> float:
        return float(self.values @ self.values) + self.sign_indices.size * self.magnitude * self.magnitude


@dataclass(frozen=True, eq=False)
class Levels(Compressed):
    """v_j = scales[⌊j / bucket⌋]·levels[j]: integers on a grid for each bucket of coordinates (QSGD sends ‖v‖/s as scale).

    Paper bits: 32 for each scale + the Elias code of the levels, the shorter of the two of QSGD's paper (Alistarh et al. 2017,
    §3.2 and its appendix): omega code of the gap to each nonzero level, its sign, omega code of its size; or for every
    coordinate its sign and the omega code of its size + 1.
    """

    levels: NDArray[np.signedinteger]  # (d,), int8 or int32
    scales: Vector  # (⌈d / bucket⌉,)
    bucket: int

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.levels.size

    @property
    def elements(self) -> int:
        return int(np.count_nonzero(self.levels))

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        adding.levels_add(self.levels, self.scales, self.bucket, scale, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        at, sparse, dense = elias.levels_lengths(self.levels, True)
        return 32 * self.scales.size + min(sparse + at.size, dense + self.levels.size)  # dense: a sign for each, 0 too

    def is_finite(self) -> bool:
        return bool(kernels.all_finite(self.scales))


@dataclass(frozen=True, eq=False)
class Ternary(Compressed):
    """v_j = magnitude·signs[j], signs −1, 0 or 1.  Paper bits: FPP + d·log2 3 (TernGrad, Wen et al. 2017, §3)."""

    signs: NDArray[np.int8]  # (d,)
    magnitude: float

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.signs.size

    @property
    def elements(self) -> int:
        return int(np.count_nonzero(self.signs))

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        adding.integers_add(self.signs, scale * self.magnitude, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return fpp + self.signs.size * log2(3)

    def is_finite(self) -> bool:
        return isfinite(self.magnitude)


@dataclass(eq=False)  # not frozen, as Sparse is not
class Lattice(Compressed):
    """v_j = Δ·integers[j] with Δ = 2σ/√d, of a vector with ‖v‖ ≤ M = radius (AIADE §2).  σ ≥ M: nothing is sent.

    Paper bits: ⌈1.05 d + d·log2((M + 2σ)/σ)⌉ (Lemma 2.1), M + 3σ for stochastic rounding, whose error can reach 2σ; + FPP where
    M is sent. A vector with NaN or infinity has a radius that is not finite, and every coordinate of it reads NaN.
    """

    integers: NDArray[np.int64]  # (d,)
    sigma: float  # σ; known to both ends
    radius: float  # M
    radius_sent: bool = False  # else both ends know it
    stochastic: bool = False

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.integers.size

    @property
    def step(self) -> float:
        """Δ."""
        return 2 * self.sigma / sqrt(self.integers.size) if isfinite(self.radius) else nan

    @property
    def elements(self) -> int:
        return 0 if self.sigma >= self.radius else self.integers.size

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        adding.integers_add(self.integers, scale * self.step, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return lattice_bits(self.integers.size, self.sigma, self.radius, self.stochastic) + fpp * self.radius_sent

    def is_finite(self) -> bool:
        return isfinite(self.radius) and isfinite(self.sigma)


def lattice_bits(dim: int, sigma: float, radius: float, stochastic: bool = False) -> float:
    """Lemma 2.1 of the AIADE paper: ⌈1.05 d + d·log2((M + 2σ)/σ)⌉; stochastic: M + 3σ; 0 where σ ≥ M."""
    if sigma >= radius:
        return 0
    if not sigma > 0 or not isfinite(radius):
        return inf
    return ceil(1.05 * dim + dim * log2(radius / sigma + (3 if stochastic else 2)))
