"""The contract of a compressed vector, and the sparse vector, which other kinds can be turned into.

A kind of ours holds one vector, or m of them, its rows. Of rows its fields have one axis more, in front: a number of a vector is an
array (m,), an array (d,) is (m, d). Arrays of different lengths lie one after another, and `ends` (m,) says where each row ends.
Fields that all rows share stay as they are.

Kinds are not frozen: that would take a quarter of the time to write and read a short message.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np

from mpi_compress.core import arrays
from mpi_compress.core.arrays import Bytes, Flags, Indices, Places, Vector, in_turn
from mpi_compress.kernels import vectors as kernels
from mpi_compress.messages import fields as written
from mpi_compress.messages.fields import Field
from mpi_compress.messages.formats import FloatFormat

__all__ = [
    "Bytes", "Compressed", "Each", "Indices", "SideInfo", "Sparse", "Vector", "checked", "concatenated", "index_bits",
    "no_coordinates", "stacked",
]  # fmt: skip

SideInfo = Mapping[str, Any]  # what `Compressor.known` gives


def index_bits(dim: int) -> int:
    """⌈log2 d⌉, the width of a field that holds any index of a vector with d coordinates."""
    return (dim - 1).bit_length()


class Compressed(ABC):
    """A compressed vector of `dim` coordinates. It takes the memory of what it holds, not of d numbers."""

    floats: ClassVar[tuple[str, ...]]  # the fields that are floats, or arrays of floats
    layouts: ClassVar[tuple[str, ...]] = ()
    """The codecs that write this kind as it says itself: `write(form)` gives the fields of the messages of rows, with floats of
    that format, and the class's `read(r, dim, known)` the rows whose messages `r` is at. They raise OverflowError and
    CorruptMessage where `encode` and `decode` of a codec do."""

    if TYPE_CHECKING:  # a field of some kinds, a property of others

        @property
        def dim(self) -> int: ...

    @property
    def rows(self) -> int | None:
        """m, where these are m vectors; None: one."""
        return None

    @property
    @abstractmethod
    def elements(self) -> Any:
        """The number of coordinates sent; of rows (m,)."""

    @abstractmethod
    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        """out += scale · this, out (dim,)."""

    @abstractmethod
    def paper_bits(self, fpp: int, indices_counted: bool = True) -> Any:
        """The paper's formula for this kind of message, of rows (m,); `fpp` is the floating-point precision in bits."""

    def is_finite(self) -> Any:
        """True if every value is a finite number; of rows (m,)."""
        return all(kernels.all_finite(np.ravel(getattr(self, name))) for name in self.floats)

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
        """The same vector, or rows, as indices and values; None for kinds that hold all coordinates."""
        return None

    def dense(self) -> Vector:
        """This vector as a new array (dim,); rows as (m, dim)."""
        out = np.zeros(self.dim if self.rows is None else (self.rows, self.dim))
        self.add_to(out)
        return out

    def as_rows(self) -> "Compressed":
        """Rows: this vector as the only one, or these."""
        return Each([self])

    def concatenated(self, parts: "Sequence[Any]") -> "Compressed | None":
        """The rows of some rows of this one's class, in their order; None: they are not alike."""
        return None

    def __len__(self) -> int:
        return 1 if self.rows is None else self.rows

    def __getitem__(self, i: int) -> "Compressed":
        """Row i as one vector."""
        raise IndexError(f"row {i} of one vector")


C = TypeVar("C", bound=Compressed)


def replaced(c: C, **fields: Any) -> C:
    """The same vector with other values of some fields."""
    return replace(c, **fields)  # type: ignore[type-var]


class InRows(Compressed):
    """A kind that holds one vector or m. A dataclass; all its fields but the `shared` ones have the axis of rows, or are kinds,
    or several kinds, of rows."""

    shared: ClassVar[tuple[str, ...]] = ("dim",)
    ragged: ClassVar[Mapping[str, str]] = {}  # flat arrays of all rows, and the field that says where each row's ends

    def as_rows(self) -> Self:
        if self.rows is not None:
            return self
        ends = {end: np.array([np.size(getattr(self, name))]) for name, end in self.ragged.items()}
        return replaced(self, **{name: _each(_raised, getattr(self, name)) for name in own_fields(type(self))}, **ends)

    def concatenated(self, parts: Sequence[Self]) -> Self | None:
        if any(getattr(c, name) != getattr(self, name) for name in self.shared for c in parts[1:]):
            return None
        held: dict[str, Any] = {name: _joined([getattr(c, name) for c in parts]) for name in own_fields(type(self))}
        for name, end in self.ragged.items():
            each = [getattr(c, name) for c in parts]
            starts = np.cumsum([0, *(a.size for a in each[:-1])])
            ends = [getattr(c, end) + start for c, start in zip(parts, starts, strict=True)]
            held |= {name: np.concatenate(each), end: np.concatenate(ends)}
        return replaced(self, **held)

    def __getitem__(self, i: int) -> Self:
        if not 0 <= i < len(self):
            raise IndexError(f"row {i} of {len(self)}")
        cut: dict[str, Any] = {}
        for name, end in self.ragged.items():
            ends = getattr(self, end)
            cut |= {name: getattr(self, name)[ends[i - 1] if i else 0 : ends[i]], end: None}

        def row(held: Any) -> Any:
            found = held[i]
            return found.item() if isinstance(found, np.generic) else found

        return replaced(self, **{name: _each(row, getattr(self, name)) for name in own_fields(type(self))}, **cut)


@cache
def own_fields(kind: type[InRows]) -> list[str]:
    """The fields with an axis of rows that are not ragged."""
    left = {*kind.shared, *kind.ragged, *kind.ragged.values()}
    return [f.name for f in fields(kind) if f.name not in left]  # type: ignore[arg-type]


def _each(made: Callable[[Any], Any], held: Any) -> Any:
    """What is made of what a field holds, or of each of several."""
    return tuple(map(made, held)) if isinstance(held, list | tuple) else made(held)


def _raised(held: Any) -> Any:
    return held.as_rows() if isinstance(held, Compressed) else np.asarray(held)[None]


def _joined(held: Sequence[Any]) -> Any:
    if isinstance(held[0], list | tuple):
        return tuple(map(concatenated, zip(*held, strict=True)))
    return concatenated(held) if isinstance(held[0], Compressed) else np.concatenate(held)


class Stacked(InRows):
    """A kind of arrays with an axis of rows."""

    def add_to(self, out: Vector, scale: float = 1.0, to: Places | None = None) -> None:
        """out += scale · this, out (dim,). Of rows: out[to_i] += scale · row i, one after another; None: out[i]."""
        if self.rows is None:
            self.as_rows().add_rows(out.reshape(1, -1), scale, in_turn(1))
        else:
            self.add_rows(out, scale, in_turn(self.rows) if to is None else to)

    @abstractmethod
    def add_rows(self, out: Vector, scale: float, to: Places) -> None:
        """`add_to` of rows."""

    def is_finite(self) -> Any:
        rows, finite = self.rows, True
        for name in self.floats:
            finite = finite and kernels.all_finite(np.ravel(getattr(self, name)))
        if rows is None or finite:
            return finite if rows is None else np.ones(rows, dtype=np.bool_)
        return np.array([bool(self[i].is_finite()) for i in range(rows)])


def stacked(parts: Sequence[Compressed]) -> Compressed:
    """Vectors, at least one, as rows."""
    return concatenated([c.as_rows() for c in parts])


def concatenated(parts: Sequence[Compressed]) -> Compressed:
    """The rows of some rows, at least one, in their order."""
    first = parts[0]
    if len(parts) == 1:
        return first
    made = first.concatenated(parts) if all(type(c) is type(first) for c in parts) else None
    return Each([c[i] for c in parts for i in range(c.rows or 0)]) if made is None else made


@dataclass(eq=False)
class Each(Compressed):
    """Vectors of any kinds as rows, one by one."""

    parts: Sequence[Compressed]

    @property
    def rows(self) -> int:
        return len(self.parts)

    @property
    def dim(self) -> int:
        return self.parts[0].dim

    @property
    def elements(self) -> Places:
        return np.array([c.elements for c in self.parts])

    def add_to(self, out: Vector, scale: float = 1.0, to: Places | None = None) -> None:
        for c, i in zip(self.parts, in_turn(self.rows) if to is None else to, strict=True):
            c.add_to(out[i], scale)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> Vector:
        return np.array([c.paper_bits(fpp, indices_counted) for c in self.parts], dtype=np.float64)

    def is_finite(self) -> Flags:
        return np.array([c.is_finite() for c in self.parts])

    def sparse(self) -> "Sparse | None":
        found = [c.sparse() for c in self.parts]
        return None if any(c is None for c in found) else stacked(found)  # type: ignore[arg-type, return-value]

    def as_rows(self) -> "Each":
        return self

    def __getitem__(self, i: int) -> Compressed:
        return self.parts[i]


class Ragged(Stacked):
    """A kind whose vectors hold different numbers of coordinates."""

    ragged = {"values": "ends"}  # noqa: RUF012
    ends: Places | None

    @property
    def rows(self) -> int | None:
        return None if self.ends is None else self.ends.size

    @property
    def counts(self) -> Any:
        """T; of rows (m,)."""
        return getattr(self, next(iter(self.ragged))).size if self.ends is None else kernels.lengths_of(self.ends)

    @property
    def elements(self) -> Any:
        return self.counts

    def add_rows(self, out: Vector, scale: float, to: Places) -> None:
        sparse: Any = self.sparse()
        sparse.add_rows(out, scale, to)


class FromSeed(Stacked):
    """Numbers, and a seed from which both ends draw what these belong to. Paper bits: FPP for each number. A kind names the field
    of its numbers in `floats`."""

    layouts = ("seeded",)
    seed_type: ClassVar[str] = "<u4"
    seed: Any

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> Any:
        return self.elements * fpp

    @property
    def number_ends(self) -> Places:
        """Where the numbers of each row end, laid out flat."""
        numbers = getattr(self, self.floats[0])
        return written.equal_ends(len(numbers), int(np.prod(numbers.shape[1:])))

    def write(self, form: FloatFormat) -> list[Field]:
        numbers = np.ravel(getattr(self, self.floats[0]))
        return [written.wholes(self.seed, self.seed_type), written.floats(numbers, self.number_ends, form)]


@dataclass(eq=False)
class Sparse(Ragged):
    """T coordinates with their values, the others 0.  Paper bits: T(⌈log2 d⌉ + FPP), CAT eq. 5."""

    floats, ragged = ("values",), {"indices": "ends", "values": "ends"}
    dim: int
    indices: Indices  # (T,) increasing in each row
    values: Vector  # (T,)
    ends: Places | None = None

    def add_rows(self, out: Vector, scale: float, to: Places) -> None:
        kernels.scatter_add(self.indices, self.values, self.ends, scale, to, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> Any:
        return self.counts * (index_bits(self.dim) * indices_counted + fpp)

    def sparse(self) -> "Sparse":
        return self

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
