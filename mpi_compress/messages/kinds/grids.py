"""Kinds with a number for each of the d coordinates: floats, whole numbers on a grid, lattice points."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, inf, isfinite, log2, nan, sqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core import arrays
from mpi_compress.kernels import elias
from mpi_compress.kernels import vectors as kernels
from mpi_compress.messages import fields as written
from mpi_compress.messages.fields import Field, Reader
from mpi_compress.messages.formats import FloatFormat
from mpi_compress.messages.kinds.base import Flags, Places, SideInfo, Stacked, Vector, replaced

__all__ = ["BlockSigns", "Dense", "Dithered", "Lattice", "Levels", "Ternary", "lattice_bits"]


class Whole(Stacked):
    """A kind whose field `numbers` is an array (d,)."""

    shared: ClassVar[tuple[str, ...]] = ()
    numbers: ClassVar[str]

    @property
    def held(self) -> NDArray:
        """The numbers (d,), of rows (m, d)."""
        return getattr(self, self.numbers)

    @property
    def rows(self) -> int | None:
        held = getattr(self, self.numbers)
        return None if held.ndim == 1 else len(held)

    @property
    def dim(self) -> int:
        return getattr(self, self.numbers).shape[-1]

    @property
    def elements(self) -> Any:
        return np.count_nonzero(self.held, axis=-1)

    @property
    def all_elements(self) -> Any:
        """d; of rows (m,)."""
        return self.dim if self.rows is None else np.full(self.rows, self.dim)


@dataclass(eq=False)
class Dense(Whole):
    """All coordinates.  Paper bits: d·FPP."""

    numbers, floats, layouts = "values", ("values",), ("fixed", "dense")
    values: Vector  # (d,)

    @property
    def elements(self) -> Any:
        *rows, dim = self.values.shape
        return np.full(rows, dim) if rows else dim

    def as_rows(self) -> "Dense":
        return Dense(self.values[None]) if self.values.ndim == 1 else self

    def add_rows(self, out: Vector, scale: float, to: Places) -> None:
        m, dim = self.values.shape
        kernels.levels_add(self.values, np.ones((m, 1)), dim, scale, to, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> Any:
        return self.elements * fpp

    def checked(self, dim: int) -> "Dense":
        return Dense(arrays.floats(self.values, (dim,), "values"))

    def write(self, form: FloatFormat) -> list[Field]:
        return [written.floats(self.values.ravel(), written.equal_ends(*self.values.shape), form)]

    @classmethod
    def read(cls, r: Reader, dim: int, known: SideInfo) -> "Dense":
        return Dense(r.floats(dim).reshape(-1, dim))


class Grid(Whole):
    """v_j = step[⌊j / bucket⌋]·numbers[j]: whole numbers on a grid, whose step a bucket of coordinates shares. A kind names its
    fields: `numbers`, the steps in `floats` (one number where all coordinates share it), and `bucket`. The layout "packed" is the
    steps, then a sign and ⌈log2(most + 1)⌉ bits for each number; "entropy" is the `head`, then the numbers by the range coder."""

    bucket_name: ClassVar[str] = ""  # the field that says how many coordinates share a step; "": all
    largest: ClassVar[int] = 2**31 - 1  # the largest magnitude of a number, unless a field `most` says it

    @property
    def steps(self) -> Vector:
        """The steps of rows (m, ·), one or one for each bucket."""
        steps = getattr(self, self.floats[0])
        return steps if self.bucket_name else steps[:, None]

    @property
    def integers(self) -> NDArray[np.signedinteger]:
        """The numbers (d,), of rows (m, d)."""
        return self.held

    def head(self, form: FloatFormat) -> Field:
        """What is written before the numbers of rows."""
        return written.floats(self.steps.ravel(), written.equal_ends(*self.steps.shape), form)

    @classmethod
    def read_steps(cls, r: Reader, dim: int, known: SideInfo) -> Vector:
        """The steps (m, ·) that `head` wrote."""
        buckets = -(-dim // known.get(cls.bucket_name, dim))
        return r.floats(buckets).reshape(-1, buckets)

    @classmethod
    def read_head(cls, r: Reader, dim: int, known: SideInfo) -> tuple[Any, Callable[[NDArray], Self]]:
        """The largest magnitude of a number, one for all rows or (m,), and what makes the rows of the numbers (m, d)."""
        most, steps = known.get("most", cls.largest), cls.read_steps(r, dim, known)
        bucket = {cls.bucket_name: dim} if cls.bucket_name else {}

        def made(integers: NDArray) -> Any:
            numbers = integers.astype(np.int8 if most < 128 else np.int32, copy=False)
            return cls(**{cls.numbers: numbers, cls.floats[0]: steps if bucket else steps[:, 0], **bucket, **known})

        return most, made

    def write(self, form: FloatFormat) -> list[Field]:
        return [self.head(form), written.signed_fields(self.integers, getattr(self, "most", self.largest).bit_length())]

    @classmethod
    def read(cls, r: Reader, dim: int, known: SideInfo) -> Self:
        most, made = cls.read_head(r, dim, known)
        return made(r.signed(dim, most.bit_length(), most))

    def add_rows(self, out: Vector, scale: float, to: Places) -> None:
        kernels.levels_add(self.integers, self.steps, getattr(self, self.bucket_name, self.dim), scale, to, out)

    def checked(self, dim: int) -> Self:
        bucket, most = getattr(self, self.bucket_name, dim), getattr(self, "most", self.largest)
        if not bucket >= 1:
            raise ValueError(f"{self.bucket_name} = {bucket} must be at least 1")
        name, shape = self.floats[0], (-(-dim // bucket),)
        given, numbers = getattr(self, name), self._checked_numbers(dim, most)
        steps: Any = arrays.floats(given, shape, name) if self.bucket_name else arrays.number(given, name)
        return replaced(self, **{self.numbers: numbers, name: steps})

    def _checked_numbers(self, dim: int, most: int) -> NDArray:
        numbers = arrays.whole(getattr(self, self.numbers), (dim,), self.numbers, -most, most)
        return numbers.astype(np.int8 if most < 128 or numbers.dtype == np.int8 else np.int32, copy=False)


@dataclass(eq=False)
class Levels(Grid):
    """v_j = scales[⌊j / bucket⌋]·levels[j]: integers on a grid for each bucket of coordinates (QSGD sends ‖v‖/s as scale). Paper
    bits: 32 for each scale + the Elias code of the levels, the shorter of the two of QSGD's paper (Alistarh et al. 2017, §3.2 and
    its appendix): omega code of the gap to each nonzero level, its sign, omega code of its size; or for every coordinate its sign
    and the omega code of its size + 1."""

    numbers, floats, bucket_name, layouts, shared = "levels", ("scales",), "bucket", ("entropy",), ("bucket",)
    levels: NDArray[np.signedinteger]  # (d,), int8 or int32
    scales: Vector  # (⌈d / bucket⌉,)
    bucket: int  # coordinates that share a scale

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> Any:
        c = self.as_rows()
        bits = 32 * c.scales.shape[1] + elias.paper_bits(c.levels)
        return float(bits[0]) if self.rows is None else bits


@dataclass(eq=False)
class Dithered(Grid):
    """v_j = scale·levels[j], |levels[j]| ≤ most.  Paper bits: FPP + d(1 + ⌈log2(most + 1)⌉): a sign and one of 0 … most each."""

    numbers, floats, layouts, shared = "levels", ("scale",), ("packed", "entropy"), ("most",)
    levels: NDArray[np.signedinteger]  # (d,), int8 or int32
    scale: Any
    most: int  # known to both ends

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> Any:
        return fpp + self.all_elements * (1 + self.most.bit_length())


@dataclass(eq=False)
class Ternary(Grid):
    """v_j = magnitude·signs[j], signs −1, 0 or 1.  Paper bits: FPP + d·log2 3 (TernGrad, Wen et al. 2017, §3)."""

    numbers, floats, largest, layouts = "signs", ("magnitude",), 1, ("entropy",)
    signs: NDArray[np.int8]  # (d,)
    magnitude: Any

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> Any:
        return fpp + self.all_elements * log2(3)


@dataclass(eq=False)
class BlockSigns(Grid):
    """v_j = ±scales[⌊j / block⌋].  Paper bits: d + FPP for each block (Zheng, Huang, Kwok 2019, §4)."""

    numbers, floats, bucket_name, layouts, shared = "negative", ("scales",), "block", ("packed",), ("block",)
    negative: Flags  # (d,) True where the value is −scale
    scales: Vector  # (⌈d / block⌉,)
    block: int  # coordinates that share a scale; known to both ends

    @property
    def elements(self) -> Any:
        return self.all_elements

    @property
    def integers(self) -> NDArray[np.signedinteger]:
        return 1 - 2 * self.negative.view(np.int8)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> Any:
        return self.all_elements + fpp * self.scales.shape[-1]

    def _checked_numbers(self, dim: int, most: int) -> NDArray:
        return arrays.flags(self.negative, (dim,), "negative")

    def write(self, form: FloatFormat) -> list[Field]:
        return [self.head(form), written.signs(self.negative.ravel(), written.equal_ends(len(self), self.dim))]

    @classmethod
    def read(cls, r: Reader, dim: int, known: SideInfo) -> "BlockSigns":
        scales = cls.read_steps(r, dim, known)
        return BlockSigns(r.signs(dim).reshape(-1, dim), scales, known["block"])


@dataclass(eq=False)
class Lattice(Whole):
    """v_j = Δ·integers[j] with Δ = 2σ/√d, of a vector with ‖v‖ ≤ M = radius (AIADE §2). σ ≥ M: nothing is sent. Paper bits: ⌈1.05 d
    + d·log2((M + 2σ)/σ)⌉ (Lemma 2.1), M + 3σ for stochastic rounding, whose error can reach 2σ; + FPP where M is sent. A vector
    with NaN or infinity has a radius that is not finite, and all its coordinates are decoded as NaN."""

    numbers, floats, shared = "integers", ("radius", "sigma"), ("sigma", "radius_sent", "stochastic")
    integers: Places  # (d,)
    sigma: float  # σ; known to both ends
    radius: Any  # M
    radius_sent: bool = False  # False: both ends know it
    stochastic: bool = False

    @property
    def step(self) -> Any:
        """Δ, of rows (m,); NaN if the radius is not finite."""
        step = np.where(np.isfinite(self.radius), 2 * self.sigma / sqrt(self.dim), nan)
        return float(step) if self.rows is None else step

    @property
    def elements(self) -> Any:
        held = np.where(self.sigma >= np.asarray(self.radius), 0, self.dim)
        return held if self.rows else int(held)

    def add_rows(self, out: Vector, scale: float, to: Places) -> None:
        kernels.levels_add(self.integers, self.step[:, None], self.dim, scale, to, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> Any:
        if self.rows is not None:
            return np.array([self[i].paper_bits(fpp) for i in range(self.rows)], dtype=np.float64)
        return lattice_bits(self.dim, self.sigma, self.radius, self.stochastic) + fpp * self.radius_sent

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
