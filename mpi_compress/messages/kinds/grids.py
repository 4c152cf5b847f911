"""Kinds with a number for each of the d coordinates: floats, whole numbers on a grid, lattice points."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, inf, isfinite, log2, nan, sqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core import arrays
from mpi_compress.kernels import elias
from mpi_compress.kernels import vectors as kernels
from mpi_compress.messages.fields import Reader, float_bytes, sign_bytes, signed_fields
from mpi_compress.messages.formats import FloatFormat
from mpi_compress.messages.kinds.base import Bytes, Compressed, Flags, Known, SaysLayout, Vector, replaced

__all__ = ["BlockSigns", "Dense", "Dithered", "Grid", "Lattice", "Levels", "Ternary", "lattice_bits"]



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
class Dense(Whole, SaysLayout):
    """All coordinates.  Paper bits: d·FPP."""

    numbers, floats, layouts = "values", ("values",), ("fixed", "dense")
    values: Vector  # (d,)

    @property
    def elements(self) -> int:
        return self.values.size

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        kernels.dense_add(self.values, scale, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return self.values.size * fpp

    def checked(self, dim: int) -> "Dense":
        return Dense(arrays.floats(self.values, (dim,), "values"))

    def write(self, form: FloatFormat) -> Bytes:
        return float_bytes(self.values, form).copy()

    @classmethod
    def read(cls, r: Reader, dim: int, known: Known) -> "Dense":
        return Dense(r.floats(dim))


class Integral(Whole, SaysLayout):
    """Whole numbers (d,), and a head that says what they mean. The layout "entropy" is the head, then the numbers by the range
    coder."""

    @abstractmethod
    def head(self, form: FloatFormat) -> Bytes:
        """What is written before the numbers."""

    @classmethod
    @abstractmethod
    def read_head(cls, r: Reader, dim: int, known: Known) -> tuple[int, Callable[[NDArray[Any]], Self]]:
        """The largest magnitude of a number, and what makes the vector of the numbers (d,)."""

class Grid(Integral):
    """v_j = step[⌊j / bucket⌋]·numbers[j]: whole numbers on a grid, whose step a bucket of coordinates shares. A kind names its
    fields: `numbers`, the steps in `floats` (one number where all coordinates share it), and `bucket`. The layout "packed" is the
    steps, then a sign and ⌈log2(most + 1)⌉ bits for each number."""

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

    def head(self, form: FloatFormat) -> Bytes:
        return float_bytes(self.steps, form)

    @classmethod
    def read_head(cls, r: Reader, dim: int, known: Known) -> tuple[int, Callable[[NDArray[Any]], Self]]:
        bucket, most = cls.known_grid(dim, known)
        return most, partial(cls.on_grid, steps=r.floats(-(-dim // bucket)), known=known)

    def write(self, form: FloatFormat) -> Bytes:
        return np.concatenate([self.head(form), signed_fields(self.integers, getattr(self, "most", self.largest).bit_length())])

    @classmethod
    def read(cls, r: Reader, dim: int, known: Known) -> Self:
        most, made = cls.read_head(r, dim, known)
        return made(r.signed(dim, most.bit_length(), most))

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        integers = self.integers
        kernels.levels_add(integers, self.steps, getattr(self, self.bucket_name, integers.size), scale, out)

    def checked(self, dim: int) -> Self:
        bucket, most = getattr(self, self.bucket_name, dim), getattr(self, "most", self.largest)
        if not bucket >= 1:
            raise ValueError(f"{self.bucket_name} = {bucket} must be at least 1")
        name, shape = self.floats[0], (-(-dim // bucket),)
        given, numbers = getattr(self, name), self._checked_numbers(dim, most)
        steps: Any = arrays.floats(given, shape, name) if self.bucket_name else arrays.number(given, name)
        return replaced(self, **{self.numbers: numbers, name: steps})

    def _checked_numbers(self, dim: int, most: int) -> NDArray[Any]:
        numbers = arrays.whole(getattr(self, self.numbers), (dim,), self.numbers, -most, most)
        return numbers.astype(np.int8 if most < 128 or numbers.dtype == np.int8 else np.int32, copy=False)


@dataclass(frozen=True, eq=False)
class Levels(Grid):
    """v_j = scales[⌊j / bucket⌋]·levels[j]: integers on a grid for each bucket of coordinates (QSGD sends ‖v‖/s as scale). Paper
    bits: 32 for each scale + the Elias code of the levels, the shorter of the two of QSGD's paper (Alistarh et al. 2017, §3.2 and
    its appendix): omega code of the gap to each nonzero level, its sign, omega code of its size; or for every coordinate its sign
    and the omega code of its size + 1."""

    numbers, floats, bucket_name, layouts = "levels", ("scales",), "bucket", ("entropy",)
    levels: NDArray[np.signedinteger]  # (d,), int8 or int32
    scales: Vector  # (⌈d / bucket⌉,)
    bucket: int  # coordinates that share a scale

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        at, sparse, dense = elias.levels_lengths(self.levels, True)
        return 32 * self.scales.size + min(sparse + at.size, dense + self.levels.size)  # dense: every level has a sign, 0 too


@dataclass(frozen=True, eq=False)
class Dithered(Grid):
    """v_j = scale·levels[j], |levels[j]| ≤ most.  Paper bits: FPP + d(1 + ⌈log2(most + 1)⌉): a sign and one of 0 … most each."""

    numbers, floats, layouts = "levels", ("scale",), ("packed", "entropy")
    levels: NDArray[np.signedinteger]  # (d,), int8 or int32
    scale: float
    most: int  # known to both ends

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return fpp + self.levels.size * (1 + self.most.bit_length())


@dataclass(frozen=True, eq=False)
class Ternary(Grid):
    """v_j = magnitude·signs[j], signs −1, 0 or 1.  Paper bits: FPP + d·log2 3 (TernGrad, Wen et al. 2017, §3)."""

    numbers, floats, largest, layouts = "signs", ("magnitude",), 1, ("entropy",)
    signs: NDArray[np.int8]  # (d,)
    magnitude: float

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return fpp + self.signs.size * log2(3)


@dataclass(frozen=True, eq=False)
class BlockSigns(Grid):
    """v_j = ±scales[⌊j / block⌋].  Paper bits: d + FPP for each block (Zheng, Huang, Kwok 2019, §4)."""

    numbers, floats, bucket_name, layouts = "negative", ("scales",), "block", ("packed",)
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

    def write(self, form: FloatFormat) -> Bytes:
        return np.concatenate([self.head(form), sign_bytes(self.negative)])

    @classmethod
    def read(cls, r: Reader, dim: int, known: Known) -> "BlockSigns":
        scales = r.floats(-(-dim // known["block"]))
        return BlockSigns(r.signs(dim), scales, known["block"])


@dataclass(eq=False)  # not frozen, as Sparse is not
class Lattice(Whole):
    """v_j = Δ·integers[j] with Δ = 2σ/√d, of a vector with ‖v‖ ≤ M = radius (AIADE §2). σ ≥ M: nothing is sent. Paper bits: ⌈1.05 d
    + d·log2((M + 2σ)/σ)⌉ (Lemma 2.1), M + 3σ for stochastic rounding, whose error can reach 2σ; + FPP where M is sent. A vector
    with NaN or infinity has a radius that is not finite, and all its coordinates are decoded as NaN."""

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
