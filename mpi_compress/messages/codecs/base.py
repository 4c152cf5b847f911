"""The contract of a codec, and the fields that several codecs share: counts and floats."""

import struct
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.core.registry import Registry
from mpi_compress.kernels.floats import put_count, shorten, take_floats
from mpi_compress.messages.kinds import Compressed, SparseRows, Vector

Bytes = NDArray[np.uint8]
Real = float  # Codec has a field of that name
NOTHING: Mapping[str, Any] = MappingProxyType({})
_NUMBERS = {32: struct.Struct("<f"), 64: struct.Struct("<d")}


@dataclass(frozen=True)
class Codec(ABC):
    """Writes compressed vectors as bytes, exactly, and reads them back.

    A message delimits itself: a reader that knows the kind of message and its dimension knows where it ends.
    """

    name: ClassVar[str]  # in jobs; set by its registration
    tells_kind: ClassVar[bool] = False  # whether a message itself says if it is sparse or dense

    float: Literal[32, 64] = 64  # bits of a float on the wire, and the FPP of paper bits
    indices: Literal["counted", "free"] = "counted"  # for paper bits only: some authors do not count indices
    element_bits: Real | None = None  # for paper bits only: b bits for each of the d coordinates, as GSpar fig. 3 counts QSGD(b)

    @abstractmethod
    def writes(self, kind: type[Compressed]) -> bool:
        """Whether this codec can write compressed vectors of that kind."""

    @abstractmethod
    def encode(self, compressed: Compressed) -> Bytes:
        """The message, its values rounded to the codec's floats.

        Raises:
            OverflowError: a finite value that the codec's floats cannot hold.
        """

    @abstractmethod
    def decode(
        self, data: Bytes, at: int, dim: int, kind: type[Compressed], known: Mapping[str, Any] = NOTHING
    ) -> tuple[Compressed, int]:
        """The message that starts at data[at], and where it ends; `known` is what the compressor says that both ends know.

        Raises:
            CorruptMessage: bytes that `encode` cannot have written.
        """

    def planned_bytes(self, kind: type[Compressed], T: Any, dim: int) -> Any:
        """The length of a message with T coordinates, whole numbers or an array of them; None: T alone does not decide it."""
        return None

    def paper_bits(self, content: Compressed) -> Real:
        """The paper's count for a message, from what was decoded."""
        if self.element_bits is not None:
            return self.element_bits * content.dim
        return content.paper_bits(self.float, self.indices == "counted")


class BulkCodec(ABC):
    """A codec that writes and reads many sparse vectors by one call."""

    @abstractmethod
    def encode_all(self, rows: SparseRows) -> tuple[Bytes, NDArray[np.int64]] | None:
        """The messages, as `encode` writes them, one after the other, and where each ends; None: a finite value overflows.

        8 bytes more than they take, for `decode_all` reads whole words.
        """

    @abstractmethod
    def decode_all(self, data: Bytes, ends: NDArray[np.int64], dim: int) -> SparseRows:
        """What messages say that `encode_all` wrote."""


codecs: Registry[Codec] = Registry("codec", Codec)


def count_bytes(count: int) -> Bytes:
    """A count in seven-bit groups, low ones first, the top bit set on all but the last."""
    out = np.empty(count_length(count), dtype=np.uint8)
    put_count(count, out)
    return out


def count_length(count: int) -> int:
    """The length of `count_bytes`."""
    return 1 if count < 128 else (count.bit_length() + 6) // 7


def count_lengths(counts: Any) -> Any:
    """The same for an array of counts."""
    return 1 + sum(np.asarray(counts) >= 1 << group for group in range(7, 63, 7))


def read_count(data: Bytes, at: int, most: int) -> tuple[int, int]:
    """The count that starts at data[at], at most `most`, and where it ends."""
    if at < data.size and (count := data.item(at)) < 128 and count <= most:
        return count, at + 1
    count = shift = 0
    while at < data.size:
        group = data.item(at)
        at += 1
        count |= (group & 127) << shift
        if count > most:
            break
        if group < 128:
            return count, at
        shift += 7
    raise CorruptMessage(f"no count up to {most} ends before byte {at} of {data.size}")


def float_bytes(values: Vector, bits: int) -> Bytes:
    """Values as little-endian floats of 32 or 64 bits; a view of them where they are that already.

    Raises:
        OverflowError: a finite value beyond the largest float of 32 bits.
    """
    if bits == 64:
        return np.ascontiguousarray(values, dtype="<f8").view(np.uint8)
    short = np.empty(values.size, dtype="<f4")
    if not shorten(values, short):
        refuse(values)
    return short.view(np.uint8)


def refuse(values: Vector) -> NoReturn:
    """Raise the OverflowError that says which value does not fit a float of 32 bits."""
    worst = np.max(np.abs(values[np.isfinite(values)]))
    raise OverflowError(f"a value of magnitude {worst:g} overflows a float of 32 bits; use float = 64")


def read_floats(data: Bytes, at: int, count: int, bits: int) -> tuple[Vector, int]:
    """`count` floats from data[at] on, as a new array of float64, and where they end."""
    end = at + count * bits // 8
    if end > data.size:
        raise CorruptMessage(f"{count} floats of {bits} bits need {end} bytes; there are {data.size}")
    values = np.empty(count)
    take_floats(data, at, bits, values)
    return values, end


def number_bytes(value: Real, bits: int) -> Bytes:
    """One float, as `float_bytes` writes it."""
    return np.frombuffer(_packed(value, bits), dtype=np.uint8)


def rounded(value: Real, bits: int) -> Real:
    """The number that `number_bytes` writes."""
    return _NUMBERS[bits].unpack(_packed(value, bits))[0]


def _packed(value: Real, bits: int) -> bytes:
    try:
        return _NUMBERS[bits].pack(value)
    except OverflowError:
        refuse(np.array([value]))


def read_number(data: Bytes, at: int, bits: int) -> tuple[Real, int]:
    """One float from data[at] on, and where it ends."""
    end = at + bits // 8
    if end > data.size:
        raise CorruptMessage(f"a float of {bits} bits ends at byte {end}; there are {data.size}")
    return _NUMBERS[bits].unpack_from(data.data, at)[0], end


def readable(data: Bytes) -> Bytes:
    """The same with at least 8 bytes, as kernels that read whole words want it; they say themselves where a message ends."""
    return data if data.size >= 8 else np.concatenate([data, np.zeros(8, dtype=np.uint8)])


def within(end: int, data: Bytes) -> int:
    """`end`, where a kernel says that a message ends, if it is one and inside the data."""
    if not 0 <= end <= data.size:
        raise CorruptMessage(f"no message of this codec begins the {data.size} bytes")
    return end
