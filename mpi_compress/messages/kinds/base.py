"""The contract of a compressed vector, and the sparse vector, which other kinds can be turned into."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core import arrays
from mpi_compress.core.arrays import Bytes, Flags, Indices, Vector
from mpi_compress.kernels import vectors as kernels
from mpi_compress.messages.fields import Reader, float_bytes, seed_bytes
from mpi_compress.messages.formats import FloatFormat

__all__ = [
    "Bytes", "Compressed", "Flags", "FromSeed", "Indices", "Known", "SaysLayout", "Sparse", "Vector", "checked", "index_bits",
    "no_coordinates",
]  # fmt: skip

Known = Mapping[str, Any]  # what `Compressor.known` gives


def index_bits(dim: int) -> int:
    """⌈log2 d⌉, the width of a field that holds any index of a vector with d coordinates."""
    return (dim - 1).bit_length()


class Compressed(ABC):
    """A compressed vector of `dim` coordinates. It takes the memory of what it holds, not of d numbers."""

    floats: ClassVar[tuple[str, ...]]  # the fields that are floats, or arrays of floats
    layouts: ClassVar[tuple[str, ...]] = ()  # the codecs that write this kind as it says itself: see `SaysLayout`

    if TYPE_CHECKING:  # a field of some kinds, a property of others

        @property
        def dim(self) -> int: ...

    @property
    @abstractmethod
    def elements(self) -> int:
        """The number of coordinates sent."""

    @abstractmethod
    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        """out += scale · this, out (dim,)."""

    @abstractmethod
    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        """The paper's formula for this kind of message; `fpp` is the floating-point precision in bits."""

    def is_finite(self) -> bool:
        """True if every value is a finite number."""
        for name in self.floats:
            held = getattr(self, name)
            if not (kernels.all_finite(held.ravel()) if type(held) is np.ndarray else isfinite(held)):
                return False
        return True

    def checked(self, dim: int) -> "Compressed":
        """The same vector with arrays as kernels need them: of the right types and sizes, contiguous, indices increasing.

        A user's compressor or codec may give indices in any order, and arrays of any type that holds such numbers.

        Raises:
            ValueError: it is no vector of `dim` coordinates.
        """
        if self.dim != dim:
            raise ValueError(f"dim = {self.dim} was given, and the vector has {dim} coordinates")
        return self

    def sparse(self) -> "Sparse | None":
        """The same vector as indices and values; None for kinds that hold all coordinates."""
        return None

    def dense(self) -> Vector:
        """This vector as a new array (dim,)."""
        out = np.zeros(self.dim)
        self.add_to(out)
        return out


C = TypeVar("C", bound=Compressed)


def replaced(c: C, **fields: Any) -> C:
    """The same vector with other values of some fields."""
    return replace(c, **fields)  # type: ignore[type-var]


class SaysLayout(Compressed):
    """A kind that says how it is written: its message by each codec that its `layouts` name."""

    @abstractmethod
    def write(self, form: FloatFormat) -> Bytes:
        """The message, with floats of that format; raises OverflowError where `Codec.encode` does."""

    @classmethod
    @abstractmethod
    def read(cls, r: Reader, dim: int, known: Known) -> Self:
        """Read the message that `r` is at; raises CorruptMessage where `Codec.decode` does."""


class FromSeed(SaysLayout):
    """Numbers, and a seed from which both ends draw what these belong to. Paper bits: FPP for each number. A kind names the field
    of its numbers in `floats`."""

    layouts = ("seeded",)
    seed_type: ClassVar[str] = "<u4"
    seed: int

    @property
    def numbers(self) -> NDArray[np.float64]:
        return getattr(self, self.floats[0])

    @property
    def elements(self) -> int:
        """The numbers sent."""
        return self.numbers.size

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return self.elements * fpp

    def write(self, form: FloatFormat) -> Bytes:
        return np.concatenate([seed_bytes(self.seed, self.seed_type), float_bytes(self.numbers.ravel(), form)])


@dataclass(eq=False)  # not frozen: that would take a quarter of the time to write and read a short message
class Sparse(Compressed):
    """T coordinates with their values, the others 0.  Paper bits: T(⌈log2 d⌉ + FPP), CAT eq. 5."""

    floats = ("values",)
    dim: int
    indices: Indices  # (T,) increasing
    values: Vector  # (T,)
    seen_finite: bool = False  # True if all values are known to be finite

    @property
    def elements(self) -> int:
        return self.indices.size

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        kernels.scatter_add(self.indices, self.values, scale, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return self.indices.size * (index_bits(self.dim) * indices_counted + fpp)

    def sparse(self) -> "Sparse":
        return self

    def is_finite(self) -> bool:
        return self.seen_finite or not self.values.size or bool(kernels.all_finite(self.values))

    def checked(self, dim: int) -> "Sparse":
        super().checked(dim)
        indices, order = arrays.increasing(self.indices, dim, "indices")
        return Sparse(dim, indices, arrays.floats(self.values, indices.shape, "values")[order])


def checked(given: Any, dim: int) -> Compressed:
    """The vector (dim,) that a user's compressor or codec returned; ValueError if it is none."""
    if not isinstance(given, Compressed):
        such = "such as Sparse(v.size, indices, v[indices]) or Dense(v)"
        raise ValueError(f"{arrays.shown(given)} was given; it should be a Compressed, {such}")
    return given.checked(dim)


@cache
def no_coordinates(dim: int) -> Sparse:
    """The vector 0 (dim,)."""
    return Sparse(dim, np.empty(0, dtype=np.uint32), np.empty(0))
