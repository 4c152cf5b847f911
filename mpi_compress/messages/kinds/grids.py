"""Kinds with a number for each of the d coordinates: floats, whole numbers on a grid, powers of two, lattice points."""

from dataclasses import dataclass, replace
from math import ceil, inf, isfinite, log2, nan, sqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core import arrays
from mpi_compress.kernels import elias
from mpi_compress.kernels import vectors as kernels
from mpi_compress.messages.kinds.base import Compressed, Flags, Known, Vector

LEAST, MOST = -1074, 1023  # the exponents of floats, denormals included
MOST_FRACTION = 16
EXPONENT_BITS = {16: 5, 32: 8, 64: 11}  # the exponent bits of IEEE's floats


class Whole(Compressed):
    """A kind whose field `numbers` is an array (d,)."""

    numbers: ClassVar[str]

    @property
    def dim(self) -> int:
        return getattr(self, self.numbers).size

    @property
    def elements(self) -> int:
        return int(np.count_nonzero(getattr(self, self.numbers)))


@dataclass(frozen=True, eq=False)
class Dense(Whole):
    """All coordinates.  Paper bits: d·FPP."""

    numbers, floats = "values", ("values",)
    values: Vector  # (d,)

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


class Grid(Whole):
    """v_j = step[⌊j / bucket⌋]·numbers[j]: whole numbers on a grid, whose step a bucket of coordinates shares.

    A kind names its fields: `numbers`, the steps in `floats` (one number where all coordinates share it), and `bucket`.
    """

    bucket_name: ClassVar[str] = ""  # the field that says how many coordinates share a step; "": all
    largest: ClassVar[int] = 2**31 - 1  # the largest magnitude of a number, unless a field `most` says it

    @property
    def steps(self) -> Vector:
        steps = getattr(self, self.floats[0])
        return steps if self.bucket_name else np.array([steps])

    @property
    def integers(self) -> NDArray[np.signedinteger]:
        return getattr(self, self.numbers)

    @classmethod
    def known_grid(cls, dim: int, known: Known) -> tuple[int, int]:
        """The bucket, and the largest magnitude of a number, by what both ends know."""
        return known.get(cls.bucket_name) or dim, known.get("most", cls.largest)

    @classmethod
    def on_grid(cls, integers: NDArray[np.signedinteger], steps: Vector, known: Known) -> Self:
        """The vector with these numbers (d,) and steps, and with what both ends know."""
        bucket, most = cls.known_grid(integers.size, known)
        shared = {cls.bucket_name: bucket} if cls.bucket_name else {}
        numbers = integers.astype(np.int8 if most < 128 else np.int32, copy=False)
        return cls(**{cls.numbers: numbers, cls.floats[0]: steps if shared else steps.item(), **known, **shared})

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        integers, steps = self.integers, self.steps
        bucket = getattr(self, self.bucket_name) if self.bucket_name else integers.size
        if steps.size == 1 and bucket >= integers.size:
            kernels.dense_add(integers, scale * steps[0], out)
        else:
            kernels.levels_add(integers, steps, bucket, scale, out)

    def checked(self, dim: int) -> Self:
        bucket, most = getattr(self, self.bucket_name, dim), getattr(self, "most", self.largest)
        if not bucket >= 1:
            raise ValueError(f"{self.bucket_name} = {bucket} must be at least 1")
        name, shape = self.floats[0], (-(-dim // bucket),)
        given, numbers = getattr(self, name), self._checked_numbers(dim, most)
        steps: Any = arrays.floats(given, shape, name) if self.bucket_name else arrays.number(given, name)
        return replace(self, **{self.numbers: numbers, name: steps})  # type: ignore[type-var]

    def _checked_numbers(self, dim: int, most: int) -> NDArray[Any]:
        numbers = arrays.whole(getattr(self, self.numbers), (dim,), self.numbers, -most, most)
        return numbers.astype(np.int8 if most < 128 or numbers.dtype == np.int8 else np.int32, copy=False)


@dataclass(frozen=True, eq=False)
class Levels(Grid):
    """v_j = scales[⌊j / bucket⌋]·levels[j]: integers on a grid for each bucket of coordinates (QSGD sends ‖v‖/s as scale).

    Paper bits: 32 for each scale + the Elias code of the levels, the shorter of the two of QSGD's paper (Alistarh et al. 2017,
    §3.2 and its appendix): omega code of the gap to each nonzero level, its sign, omega code of its size; or for every
    coordinate its sign and the omega code of its size + 1.
    """

    numbers, floats, bucket_name = "levels", ("scales",), "bucket"
    levels: NDArray[np.signedinteger]  # (d,), int8 or int32
    scales: Vector  # (⌈d / bucket⌉,)
    bucket: int  # coordinates that share a scale

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        at, sparse, dense = elias.levels_lengths(self.levels, True)
        return 32 * self.scales.size + min(sparse + at.size, dense + self.levels.size)  # dense: every level has a sign, 0 too


@dataclass(frozen=True, eq=False)
class Dithered(Grid):
    """v_j = scale·levels[j], |levels[j]| ≤ most.  Paper bits: FPP + d(1 + ⌈log2(most + 1)⌉): a sign and one of 0 … most each."""

    numbers, floats = "levels", ("scale",)
    levels: NDArray[np.signedinteger]  # (d,), int8 or int32
    scale: float
    most: int  # known to both ends

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return fpp + self.levels.size * (1 + self.most.bit_length())


@dataclass(frozen=True, eq=False)
class Ternary(Grid):
    """v_j = magnitude·signs[j], signs −1, 0 or 1.  Paper bits: FPP + d·log2 3 (TernGrad, Wen et al. 2017, §3)."""

    numbers, floats, largest = "signs", ("magnitude",), 1
    signs: NDArray[np.int8]  # (d,)
    magnitude: float

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return fpp + self.signs.size * log2(3)


@dataclass(frozen=True, eq=False)
class BlockSigns(Grid):
    """v_j = ±scales[⌊j / block⌋].  Paper bits: d + FPP for each block (Zheng, Huang, Kwok 2019, §4)."""

    numbers, floats, bucket_name = "negative", ("scales",), "block"
    negative: Flags  # (d,) True where the value is −scale
    scales: Vector  # (⌈d / block⌉,)
    block: int  # coordinates that share a scale; known to both ends

    @property
    def elements(self) -> int:
        return self.negative.size

    @property
    def integers(self) -> NDArray[np.signedinteger]:
        return 1 - 2 * self.negative.view(np.int8)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return self.negative.size + fpp * self.scales.size

    def _checked_numbers(self, dim: int, most: int) -> NDArray[Any]:
        return arrays.flags(self.negative, (dim,), "negative")


@dataclass(frozen=True, eq=False)
class Powers(Whole):
    """v_j = ±2^e (1 + m/2^fraction), m < 2^fraction: a sign, an exponent and the first digits after the point, or 0.

    integers[j] = ±(2^fraction (e − least) + m + 1), 0 for v_j = 0. A vector with NaN or infinity is NaN in all coordinates.

    Paper bits: d(1 + fraction + the exponent's bits in a float of FPP bits: 5, 8 or 11), Natural compression (Horváth et al.
    2019): 9d for floats of 32 bits, 12d for 64.
    """

    numbers = "integers"
    integers: NDArray[np.int32]  # (d,)
    least: int  # the least exponent
    fraction: int = 0  # known to both ends
    finite: bool = True

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        kernels.dense_add(self._values, scale, out)

    @property
    def _values(self) -> Vector:
        if not self.finite:
            return np.full(self.dim, np.nan)
        at = np.abs(self.integers) - 1
        digits = (at & ((1 << self.fraction) - 1)) + (1 << self.fraction)
        sizes = np.ldexp(digits.astype(np.float64), self.least - self.fraction + (at >> self.fraction))
        return np.sign(self.integers) * np.where(at < 0, 0.0, sizes)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return self.integers.size * (1 + self.fraction + EXPONENT_BITS[fpp])

    def is_finite(self) -> bool:
        return self.finite

    def checked(self, dim: int) -> "Powers":
        if not (LEAST <= self.least <= MOST and 0 <= self.fraction <= MOST_FRACTION):
            raise ValueError(f"least = {self.least} and fraction = {self.fraction} are not those of floats")
        most = largest_power(int(self.least), int(self.fraction))
        integers = arrays.whole(self.integers, (dim,), "integers", -most, most)
        return Powers(integers.astype(np.int32, copy=False), int(self.least), int(self.fraction), bool(self.finite))


def largest_power(least: int, fraction: int) -> int:
    """The largest magnitude of the integers of `Powers`."""
    return (MOST + 1 - least) << fraction


@dataclass(eq=False)  # not frozen, as Sparse is not
class Lattice(Whole):
    """v_j = Δ·integers[j] with Δ = 2σ/√d, of a vector with ‖v‖ ≤ M = radius (AIADE §2).  σ ≥ M: nothing is sent.

    Paper bits: ⌈1.05 d + d·log2((M + 2σ)/σ)⌉ (Lemma 2.1), M + 3σ for stochastic rounding, whose error can reach 2σ; + FPP where
    M is sent. A vector with NaN or infinity has a radius that is not finite, and all its coordinates are decoded as NaN.
    """

    numbers, floats = "integers", ("radius", "sigma")
    integers: NDArray[np.int64]  # (d,)
    sigma: float  # σ; known to both ends
    radius: float  # M
    radius_sent: bool = False  # False: both ends know it
    stochastic: bool = False

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

    def checked(self, dim: int) -> "Lattice":
        integers = arrays.whole(self.integers, (dim,), "integers").astype(np.int64, copy=False)
        return replace(self, integers=integers, sigma=float(self.sigma), radius=float(self.radius))


def lattice_bits(dim: int, sigma: float, radius: float, stochastic: bool = False) -> float:
    """Lemma 2.1 of the AIADE paper: ⌈1.05 d + d·log2((M + 2σ)/σ)⌉; stochastic: M + 3σ; 0 where σ ≥ M."""
    if sigma >= radius:
        return 0
    if not sigma > 0 or not isfinite(radius):
        return inf
    return ceil(1.05 * dim + dim * log2(radius / sigma + (3 if stochastic else 2)))
