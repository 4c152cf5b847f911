"""The contract of a codec, and what codecs of ours have in common."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np

from mpi_compress.core import arrays
from mpi_compress.core.errors import CorruptMessage
from mpi_compress.core.forms import complete
from mpi_compress.core.registry import Part, Registry
from mpi_compress.core.returned import returns
from mpi_compress.kernels import bits, sets
from mpi_compress.kernels.vectors import lengths_of
from mpi_compress.messages import fields
from mpi_compress.messages.fields import Field, Numbers, Reader
from mpi_compress.messages.formats import FORMATS, FloatFormat, Setting
from mpi_compress.messages.kinds import Bytes, Compressed, Hybrid, Indices, SideInfo, SignSparse, Sparse, checked, stacked

Real = float  # Codec has a field of that name
Decoded = tuple[Compressed, int]  # a vector, and where its bytes end
NOTHING: SideInfo = MappingProxyType({})


@dataclass(frozen=True)
class Codec(Part, ABC):
    """Writes compressed vectors as bytes, exactly, and reads them back. A message delimits itself: a reader that knows its kind and
    dimension finds where it ends. A codec of a user's own encodes and decodes one vector; one of ours writes and reads rows."""

    kinds: ClassVar[Collection[type[Compressed]]] = ()  # that it writes itself

    float: Setting = 64  # on the wire: 16 (IEEE binary16), "bf16", 32 or 64; its bits are the FPP of paper bits
    indices: Literal["counted", "free"] = "counted"  # for paper bits only: indices count, or are free, as some authors have it
    element_bits: Real | None = None  # b: paper bits are b·d, as GSpar fig. 3 counts QSGD(b); left out: by the papers' formulas

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        complete(cls, Codec, {"encode": ("write", _encode), "decode": ("read", _decode)})

    @cached_property
    def float_format(self) -> FloatFormat:
        """The format of floats on the wire."""
        return FORMATS[self.float]

    def writes(self, kind: type[Compressed]) -> bool:
        """True if this codec can write compressed vectors of that kind."""
        return kind in self.kinds or _is_layout_of(type(self), kind)

    @abstractmethod
    @returns(lambda codec, given, *_: arrays.raw(given))
    def encode(self, compressed: Compressed) -> Bytes:
        """The message, its values rounded to the codec's floats; OverflowError: a finite value that these cannot hold."""

    @abstractmethod
    @returns(lambda codec, given, data, at, dim, *_: _decoded(given, dim))
    def decode(self, data: Bytes, at: int, dim: int, kind: type[Compressed], known: SideInfo = NOTHING) -> Decoded:
        """The message that starts at data[at], and where it ends; CorruptMessage: bytes that `encode` cannot have written."""

    def write(self, c: Any) -> Field:
        """The messages of rows, with 8 bytes more behind them; raises OverflowError where `encode` does."""
        each = [self.encode(c[i]) for i in range(c.rows)]
        return fields.in_turn([(data, np.array([data.size])) for data in each])

    def read(self, r: Reader, dim: int, kind: Any, known: SideInfo) -> Any:
        """Read the rows whose messages `r` is at; raises CorruptMessage where `decode` does."""
        parts = []
        for one in r.each():
            vector, end = self.decode(r.data[one.at[0] : one.ends[0]], 0, dim, kind, known)
            one.at += end
            parts.append(vector)
        return stacked(parts)

    def planned_bytes(self, kind: type[Compressed], T: Any, dim: int) -> Any:
        """The length of a message with T coordinates, whole numbers or an array of them; None: T alone does not decide it."""
        return None

    def paper_bits(self, content: Compressed) -> Any:
        """The paper's count for a message, from what was decoded; of rows (m,)."""
        if self.element_bits is None:
            return content.paper_bits(self.float_format.bits, self.indices == "counted")
        bits = self.element_bits * content.dim
        return bits if content.rows is None else np.full(content.rows, bits)


@cache
def _is_layout_of(codec: type[Codec], kind: type[Compressed]) -> bool:
    """True if the kind itself says what the codec writes."""
    return any(vars(cls).get("name") in kind.layouts for cls in codec.__mro__)


def _encode(self: Codec, write: Callable[..., Field], compressed: Compressed) -> Bytes:
    """`encode` by rows of one."""
    data, ends = write(self, compressed.as_rows())
    return data[: ends[0]]


def _decode(self: Codec, read: Callable[..., Any], data: Bytes, at: int, dim: int, kind: Any, known: SideInfo = NOTHING) -> Decoded:
    """`decode` by rows of one."""
    r = Reader.of_one(data, at, self.float_format)
    return read(self, r, dim, kind, known)[0], int(r.at[0])


def _decoded(given: Any, dim: int) -> Decoded:
    vector, end = arrays.pair(given, "the vector, and where its bytes end")
    return checked(vector, dim), int(end)


class FieldCodec(Codec):
    """A codec of ours, which writes and reads messages field by field, those of all rows at once: as kinds say that have its name
    among their `layouts`, or in its own way."""

    def write(self, c: Any) -> Field:
        return fields.joined(*c.write(self.float_format))

    def read(self, r: Reader, dim: int, kind: Any, known: SideInfo) -> Any:
        return kind.read(r, dim, known)


def write_by(forms: Any, c: Any, write: Callable[[Any, Any], Field]) -> Field:
    """The messages of rows whose form each is one of `forms` (m,): by one call if all have the same form."""
    if _all_equal(forms):
        return write(c, forms[0])
    return fields.in_turn([write(c[i].as_rows(), form) for i, form in enumerate(forms)])


def read_by(forms: Any, r: Reader, read: Callable[[Reader, Any], Any]) -> Any:
    """The rows whose messages `r` is at, each of its form: by one call if all have the same form."""
    if _all_equal(forms):
        return read(r, forms[0])
    return stacked([read(one, form)[0] for one, form in zip(r.each(), forms, strict=True)])


def _all_equal(forms: Any) -> bool:
    """True if all have the same form; NaN is one."""
    return len(forms) == 1 or np.array_equal(forms, np.broadcast_to(forms[:1], forms.shape), equal_nan=True)


INDEXED = (Sparse, SignSparse, Hybrid)
"""The kinds that every codec of index sets writes."""
_NONE, _NO_ENDS = np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.int64)
NO_VALUED: Any = _NONE, np.empty(0), _NO_ENDS
NO_SIGNED: Any = _NONE, np.empty(0, dtype=np.bool_), np.empty(0), _NO_ENDS


class IndexCodec(FieldCodec):
    """Writes index sets in its own way, and around them:

        Sparse        T, T values, the set
        SignSparse    T, the magnitude, the set, T signs of one bit
        Hybrid        s, r, s values, the magnitude, the set of s, the set of r, r signs

    with counts in seven-bit groups, and floats of the codec's format.
    """

    way: ClassVar[sets.Way]

    def planned_set_bytes(self, T: Any, dim: int) -> Any:
        """The number of bytes of any set of T indices; None if T alone does not decide it."""
        return None

    def planned_bytes(self, kind: type[Compressed], T: Any, dim: int) -> Any:
        set_bytes = self.planned_set_bytes(T, dim)
        if set_bytes is None or kind not in (Sparse, SignSparse):
            return None
        values = T * self.float_format.nbytes if kind is Sparse else self.float_format.nbytes + (T + 7) // 8
        return fields.count_lengths(T) + values + set_bytes

    def write(self, c: Any) -> Field:
        if type(c) not in INDEXED:
            return super().write(c)
        dim, form, kind = c.dim, self.float_format, type(c)
        valued, signed = NO_VALUED, NO_SIGNED
        if kind is SignSparse:
            signed = c.indices, c.negative, c.magnitude, c.ends
        else:
            valued = c.indices, c.values, c.ends
        if kind is Hybrid:
            signed = c.sign_indices, c.negative, c.magnitude, c.sign_ends
        stops = np.empty_like(c.ends)
        room = sets.room(self.way, dim, form.nbytes, valued[0].size, signed[0].size, stops.size)
        out = np.empty(room + fields.ROOM, dtype=np.uint8)
        if (row := sets.put_messages(self.way, dim, form.precision, *valued, *signed, out, stops)) >= 0:
            for name in kind.floats:
                fields.refuse_overflow(np.ravel(getattr(c[row], name)), form)
        return out, stops

    def read(self, r: Reader, dim: int, kind: Any, known: SideInfo) -> Any:
        if kind not in INDEXED:
            return super().read(r, dim, kind, known)
        ends = r.counts(dim, running=True)
        if kind is Sparse:
            values = r.floats(ends)
            return Sparse(dim, self.read_sets(r, dim, ends), values, ends)
        if kind is SignSparse:
            magnitude = r.numbers()
            r.room_for(ends, 1, "signs")
            indices = self.read_sets(r, dim, ends)
            return SignSparse(dim, indices, r.signs(ends), magnitude, ends)
        sign_ends = r.counts(dim - lengths_of(ends), running=True)
        values, magnitude = r.floats(ends), r.numbers()
        r.room_for(sign_ends, 1, "signs")
        indices, sign_indices = self.read_sets(r, dim, ends), self.read_sets(r, dim, sign_ends)
        if bits.shared_index(indices, ends, sign_indices, sign_ends) >= 0:
            raise CorruptMessage("an index stands in both sets")
        return Hybrid(dim, indices, values, sign_indices, r.signs(sign_ends), magnitude, ends, sign_ends)

    def read_sets(self, r: Reader, dim: int, ends: Numbers) -> Indices:
        """The index sets (T,) of all rows, those of each before its end."""
        indices = np.empty(fields.last(ends), dtype=np.uint32)
        r.refuse(sets.take_sets(self.way, r.data, r.at, r.ends, dim, ends, indices), f"a set of indices below {dim}")
        return indices


codecs: Registry[Codec] = Registry("codec", Codec)
