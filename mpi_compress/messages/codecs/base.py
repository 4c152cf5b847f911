from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np

from mpi_compress.core import arrays
from mpi_compress.core.errors import CorruptMessage
from mpi_compress.core.registry import Part, Registry
from mpi_compress.core.returned import returns
from mpi_compress.kernels import bits
from mpi_compress.messages import fields
from mpi_compress.messages.fields import Reader
from mpi_compress.messages.formats import FORMATS, FloatFormat, Setting
from mpi_compress.messages.kinds import Bytes, Compressed, Hybrid, Indices, Known, SignSparse, Sparse, checked

Real = float  # Codec has a field of that name
Decoded = tuple[Compressed, int]  # a vector, and where its bytes end
NOTHING: Known = MappingProxyType({})


@dataclass(frozen=True)
class Codec(Part, ABC):
    """Writes compressed vectors as bytes, exactly, and reads them back. A message delimits itself: a reader that knows its kind and
    dimension finds where it ends."""

    kinds: ClassVar[Collection[type[Compressed]]] = ()  # that it writes itself

    float: Setting = 64  # on the wire: 16 (IEEE binary16), "bf16", 32 or 64; its bits are the FPP of paper bits
    indices: Literal["counted", "free"] = "counted"  # for paper bits only: indices count, or are free, as some authors have it
    element_bits: Real | None = None  # b: paper bits are b·d, as GSpar fig. 3 counts QSGD(b); left out: by the papers' formulas

    @cached_property
    def float_format(self) -> FloatFormat:
        """The format of floats on the wire."""
        return FORMATS[self.float]

    def writes(self, kind: type[Compressed]) -> bool:
        """True if this codec can write compressed vectors of that kind."""
        return kind in self.kinds or any(vars(cls).get("name") in kind.layouts for cls in type(self).__mro__)

    @abstractmethod
    @returns(lambda codec, given, *_: arrays.raw(given))
    def encode(self, compressed: Compressed) -> Bytes:
        """The message, its values rounded to the codec's floats; OverflowError: a finite value that these cannot hold."""

    @abstractmethod
    @returns(lambda codec, given, data, at, dim, *_: _decoded(given, dim))
    def decode(self, data: Bytes, at: int, dim: int, kind: type[Compressed], known: Known = NOTHING) -> Decoded:
        """The message that starts at data[at], and where it ends; CorruptMessage: bytes that `encode` cannot have written."""

    def planned_bytes(self, kind: type[Compressed], T: Any, dim: int) -> Any:
        """The length of a message with T coordinates, whole numbers or an array of them; None: T alone does not decide it."""
        return None

    def paper_bits(self, content: Compressed) -> Real:
        """The paper's count for a message, from what was decoded."""
        if self.element_bits is not None:
            return self.element_bits * content.dim
        return content.paper_bits(self.float_format.bits, self.indices == "counted")


def _decoded(given: Any, dim: int) -> Decoded:
    vector, end = arrays.pair(given, "the vector, and where its bytes end")
    return checked(vector, dim), int(end)


class FieldCodec(Codec):
    """A codec whose messages are read field by field."""

    @abstractmethod
    def read(self, r: Reader, dim: int, kind: type[Compressed], known: Known) -> Compressed:
        """Read the message that `r` is at; raises CorruptMessage where `decode` does."""

    def decode(self, data: Bytes, at: int, dim: int, kind: type[Compressed], known: Known = NOTHING) -> Decoded:
        r = Reader(data, at, self.float_format)
        return self.read(r, dim, kind, known), r.at


class LayoutCodec(FieldCodec):
    """A codec whose messages are as kinds say them, those that have its name among their `layouts`."""

    def encode(self, compressed: Any) -> Bytes:
        return compressed.write(self.float_format)

    def read(self, r: Reader, dim: int, kind: Any, known: Known) -> Compressed:
        return kind.read(r, dim, known)


INDEXED = (Sparse, SignSparse, Hybrid)
"""The kinds that every codec of index sets writes."""


@dataclass(frozen=True)
class IndexCodec(FieldCodec):
    """Writes index sets in its own way, and around them:

        Sparse        T, T values, the set
        SignSparse    T, the magnitude, the set, T signs of one bit
        Hybrid        s, r, s values, the magnitude, the set of s, the set of r, r signs

    with counts in seven-bit groups, and floats of the codec's format.
    """

    @abstractmethod
    def write_set(self, indices: Indices, dim: int) -> Bytes:
        """The bytes of the set (T,)."""

    @abstractmethod
    def read_set(self, r: Reader, dim: int, indices: Indices) -> None:
        """Fill `indices` (T,), T ≤ dim, with the set that `r` is at, and take its bytes; CorruptMessage where no such set is."""

    def set_bytes(self, indices: Indices, dim: int) -> int:
        """The number of bytes that `write_set` writes."""
        planned = self.planned_set_bytes(indices.size, dim)
        return self.write_set(indices, dim).size if planned is None else planned

    def planned_set_bytes(self, T: Any, dim: int) -> Any:
        """The number of bytes of any set of T indices; None if T alone does not decide it."""
        return None

    def planned_bytes(self, kind: type[Compressed], T: Any, dim: int) -> Any:
        set_bytes = self.planned_set_bytes(T, dim)
        if set_bytes is None or kind not in (Sparse, SignSparse):
            return None
        values = T * self.float_format.nbytes if kind is Sparse else self.float_format.nbytes + (T + 7) // 8
        return fields.count_lengths(T) + values + set_bytes

    def encode(self, compressed: Compressed) -> Bytes:
        form, c = self.float_format, compressed
        assert isinstance(c, Sparse | SignSparse | Hybrid)
        sets = (c.indices, c.sign_indices) if isinstance(c, Hybrid) else (c.indices,)
        counts, written = [fields.count_bytes(each.size) for each in sets], [self.write_set(each, c.dim) for each in sets]
        values = [] if isinstance(c, SignSparse) else [fields.float_bytes(c.values, form)]
        if isinstance(c, Sparse):
            return np.concatenate([*counts, *values, *written])
        return np.concatenate([*counts, *values, fields.number_bytes(c.magnitude, form), *written, fields.sign_bytes(c.negative)])

    def read(self, r: Reader, dim: int, kind: type[Compressed], known: Known) -> Compressed:
        count = r.count(most=dim)
        if kind is Sparse:
            values = r.floats(count)
            return Sparse(dim, self._set(r, dim, count), values)
        if kind is SignSparse:
            magnitude = r.number()
            r.room_for(count, 1, "signs")
            indices = self._set(r, dim, count)
            return SignSparse(dim, indices, r.signs(count), magnitude)
        sign_count = r.count(most=dim - count)
        values, magnitude = r.floats(count), r.number()
        r.room_for(sign_count, 1, "signs")
        indices, sign_indices = self._set(r, dim, count), self._set(r, dim, sign_count)
        if not bits.disjoint(indices, sign_indices):
            raise CorruptMessage("an index stands in both sets")
        return Hybrid(dim, indices, values, sign_indices, r.signs(sign_count), magnitude)

    def _set(self, r: Reader, dim: int, count: int) -> Indices:
        indices = np.empty(count, dtype=np.uint32)
        self.read_set(r, dim, indices)
        return indices


codecs: Registry[Codec] = Registry("codec", Codec)
