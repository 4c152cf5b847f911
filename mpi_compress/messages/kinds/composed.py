"""Kinds that are made of other compressed vectors: several in one message, or one with a number beside it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from mpi_compress.core.sums import added
from mpi_compress.messages.kinds.base import Compressed, Each, InRows, Places, Sparse, Vector, in_turn, index_bits, replaced
from mpi_compress.messages.kinds.coordinates import Drawn, Permuted

__all__ = ["Accompanied", "Blocks", "Chained", "Pair", "Several", "WithScalar", "WithSize"]


class _Together(InRows):
    """Compressed vectors in one message; of rows, whose parts are rows.  Paper bits: the sum of theirs."""

    shared: ClassVar[tuple[str, ...]] = ()

    if TYPE_CHECKING:  # a field of some kinds, a property of others

        @property
        def parts(self) -> Sequence[Compressed]: ...

    @property
    def rows(self) -> int | None:
        return self.parts[0].rows

    @property
    def dim(self) -> int:
        return self.parts[0].dim

    @property
    def elements(self) -> Any:
        return sum(each.elements for each in self.parts)

    def add_to(self, out: Vector, scale: float = 1.0, to: Places | None = None) -> None:
        if to is None:
            for each in self.parts:
                each.add_to(out, scale)
            return
        for i, row in enumerate(to):  # the parts of each together, as one vector adds them
            self[i].add_to(out[row], scale)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> Any:
        return added(each.paper_bits(fpp, indices_counted) for each in self.parts)

    def is_finite(self) -> Any:
        return np.logical_and.reduce([each.is_finite() for each in self.parts])


class Accompanied(_Together):
    """A vector with a number beside it, in one message."""

    vector: Compressed

    @property
    def parts(self) -> Sequence[Compressed]:
        return (self.vector,)

    def checked(self, dim: int) -> "Accompanied":
        return replaced(self, vector=self.vector.checked(dim))


@dataclass(eq=False)
class WithScalar(Accompanied):
    """A number beside a vector, in one message.  Paper bits: the vector's + FPP."""

    scalar: Any  # a number; of rows (m,)
    vector: Compressed

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> Any:
        return self.vector.paper_bits(fpp, indices_counted) + fpp

    def is_finite(self) -> Any:
        return np.isfinite(self.scalar) & self.vector.is_finite()


@dataclass(eq=False)
class WithSize(Accompanied):
    """A vector that was compressed by the size of this number among those that both ends know; one, and no rows. Paper bits: the
    vector's + ⌈log2 of how many sizes there are⌉."""

    number: int
    among: int  # how many sizes; known to both ends
    vector: Compressed

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> Any:
        return self.vector.paper_bits(fpp, indices_counted) + index_bits(self.among)

    def sparse(self) -> Sparse | None:
        return self.vector.sparse()

    as_rows, concatenated = Compressed.as_rows, Compressed.concatenated  # type: ignore[assignment]


@dataclass(eq=False)
class Pair(_Together):
    """Two vectors of one length in one message, which adds both.  Paper bits: the sum of theirs."""

    first: Compressed
    second: Compressed

    @property
    def parts(self) -> Sequence[Compressed]:
        return self.first, self.second

    def checked(self, dim: int) -> "Pair":
        return Pair(self.first.checked(dim), self.second.checked(dim))


@dataclass(eq=False)
class Several(_Together):
    """Vectors of any lengths in one message, which cannot be added.  Paper bits: the sum of theirs."""

    parts: Sequence[Compressed]

    def add_to(self, out: Vector, scale: float = 1.0, to: Places | None = None) -> NoReturn:
        raise ValueError("a message of several vectors is no vector, and cannot be added")


@dataclass(eq=False)
class Blocks(_Together):
    """Compressed vectors one after the other, as one vector.  Paper bits: the sum of theirs."""

    shared = ("codec",)
    parts: tuple[Compressed, ...]
    codec: str  # the codec that writes each of them; known to both ends

    @cached_property
    def dim(self) -> int:
        return sum(part.dim for part in self.parts)

    def add_to(self, out: Vector, scale: float = 1.0, to: Places | None = None) -> None:
        if out.shape[-1] != self.dim:
            raise ValueError("two vectors that should have the same length have not")
        if self.rows is not None:
            return super().add_to(out, scale, in_turn(self.rows) if to is None else to)
        for start, part in self._placed:
            part.add_to(out[start : start + part.dim], scale)

    @property
    def _placed(self) -> Iterator[tuple[int, Compressed]]:
        """Each part with the coordinate that it begins at."""
        start = 0
        for part in self.parts:
            yield start, part
            start += part.dim

    def sparse(self) -> Sparse | None:
        if self.rows is not None:
            return Each([self[i] for i in range(self.rows)]).sparse()
        found = [(start, part.sparse()) for start, part in self._placed]
        held = [(start, s) for start, s in found if s is not None]
        if len(held) < len(found):
            return None
        indices = np.concatenate([s.indices + np.uint32(start) for start, s in held])
        return Sparse(self.dim, indices, np.concatenate([s.values for _, s in held]))

    def checked(self, dim: int) -> "Blocks":
        super().checked(dim)
        return replace(self, parts=tuple(part.checked(part.dim) for part in self.parts))


@dataclass(eq=False)
class Chained(Compressed):
    """Some coordinates whose T values are compressed as one vector (T,).  Paper bits: the indices' + the values'."""

    placed: Sparse | Drawn | Permuted  # says which coordinates; its own values are not read
    values: Compressed  # (T,)
    codecs: tuple[str, str]  # the codecs that write the two; known to both ends
    scale: float = 1.0  # what the values are multiplied by; known to both ends

    @property
    def dim(self) -> int:
        return self.placed.dim

    @property
    def elements(self) -> int:
        return self.placed.elements

    def sparse(self) -> Sparse:
        return replace(self.placed, values=self.scale * self.values.dense()).sparse()

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        self.sparse().add_to(out, scale)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return self.placed.paper_bits(0, indices_counted) + self.values.paper_bits(fpp, indices_counted)

    def is_finite(self) -> bool:
        return self.values.is_finite()

    def checked(self, dim: int) -> "Chained":
        super().checked(dim)
        return replace(self, placed=self.placed.checked(dim), values=self.values.checked(self.placed.elements))
