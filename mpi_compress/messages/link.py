"""One direction of the network: how a vector becomes bytes, and bytes a vector."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.core.streams import Round
from mpi_compress.messages.codecs import Codec, codecs
from mpi_compress.messages.codecs.base import BulkCodec, number_bytes, read_number
from mpi_compress.messages.compressors import Compressor, compressors
from mpi_compress.messages.compressors.base import BulkCompressor
from mpi_compress.messages.kinds import Compressed, Dense, Sparse, SparseRows, Vector, no_coordinates

Bytes = NDArray[np.uint8]
LENGTH_BYTES = 4  # sent ahead of each message


@dataclass(eq=False, slots=True)
class Message:
    """The only thing that crosses between master and workers: bytes.

    Whoever decodes them first keeps the result in `content`, so that a sender who needs what its receiver will see, and a
    receiver in the same process, decode once. `refusal` is for the sender's process alone: why there are none.
    """

    data: Bytes
    content: Compressed | None = field(default=None, repr=False)
    refusal: OverflowError | None = None

    @property
    def wire_bits(self) -> int:
        """8 · (the 4-byte length + the bytes), padding included."""
        return 8 * (LENGTH_BYTES + self.data.size)


REFUSED = np.empty(0, dtype=np.uint8)
"""No codec writes an empty message: it says that its sender's values could not be encoded (they overflow, or end)."""


def attempt(send: Callable[..., Message], *arguments: Any) -> Message:
    """The message that `send` returns, or the empty one that knows why there is none."""
    try:
        return send(*arguments)
    except OverflowError as error:
        return Message(REFUSED, refusal=error)


@dataclass(frozen=True)
class Link:
    """A compressor and a codec: fixes the type of one direction's messages."""

    compressor: Compressor
    codec: Codec
    dim: int

    def at(self, **known: Any) -> "Link":
        """This link with parameters of its compressor that both ends know this round, as `sigma`; they cost no bits.

        A name that the compressor has no use for is passed over, so that an exact link can stand in for a quantiser.
        """
        kind = type(self.compressor)
        compressor = object.__new__(kind)  # many times faster than copy.copy
        for name in kind.__dataclass_fields__:
            object.__setattr__(compressor, name, known[name] if name in known else getattr(self.compressor, name))
        return type(self)(compressor, self.codec, self.dim)

    def compress(self, v: Vector, t: Round) -> Compressed:
        """C(v) of v (dim,), for what is not sent as bytes."""
        return self.compressor.compress(v, t)

    def pack(self, v: Vector | Compressed, t: Round) -> Message:
        """Compress v (dim,), or a mean that is compressed as it is, and encode what is left of it."""
        if isinstance(v, np.ndarray):
            return self.encode(self.compressor.compress(v, t))
        again = self.compressor.compress_again(v, t)
        if self.compressor.makes is Dense and not self.codec.tells_kind and not isinstance(again, Dense):
            again = Dense(again.dense())
        return self.encode(again)

    def encode(self, compressed: Compressed) -> Message:
        """Bytes for what is compressed already.

        Raises:
            OverflowError: a finite value that the codec's floats cannot hold.
        """
        if type(compressed) is Sparse and compressed.indices.size == 0:
            return self.nothing
        return Message(self.write(compressed))

    @cached_property
    def in_bulk(self) -> bool:
        """Whether there is a call that packs many vectors."""
        return isinstance(self.compressor, BulkCompressor) and isinstance(self.codec, BulkCodec)

    def pack_all(self, vs: NDArray[np.float64], rows: NDArray[np.int64]) -> tuple[list[Message], SparseRows] | None:
        """The messages of some rows of vs (m, dim), `in_bulk`, and what the receiver sees; None: `pack` refuses one of them."""
        compressor, codec = self.compressor, self.codec
        assert isinstance(compressor, BulkCompressor)
        assert isinstance(codec, BulkCodec)
        written = codec.encode_all(compressor.compress_all(vs, rows))
        if written is None:
            return None
        data, ends = written
        contents, starts = codec.decode_all(data, ends, self.dim), [0, *ends.tolist()]
        return [Message(data[a:b], c) for (a, b), c in zip(pairwise(starts), contents, strict=True)], contents

    @cached_property
    def nothing(self) -> Message:
        """The message of no coordinates: always the same, and the most frequent one of a hard threshold."""
        message = Message(self.write(no_coordinates(self.dim)))
        self.unpack(message)
        return message

    def unpack(self, message: Message) -> Compressed:
        """What the receiver sees.

        Raises:
            CorruptMessage: bytes that the codec cannot have written.
        """
        if message.content is None:
            content, end = self.read(message.data)
            if end != message.data.size:
                raise CorruptMessage(f"{message.data.size - end} bytes are left over after a message of {end} bytes")
            message.content = content
        return message.content

    def write(self, compressed: Compressed) -> Bytes:
        """What the codec makes of it."""
        return self.codec.encode(compressed)

    def read(self, data: Bytes, at: int = 0) -> tuple[Compressed, int]:
        """What the codec finds from data[at] on, and where it ends."""
        return self.codec.decode(data, at, self.dim, self.compressor.makes, self.compressor.known(self.dim))

    def planned_wire_bits(self, T: Any) -> Any:
        """The wire bits of a message with T coordinates, whole numbers or an array; None: T alone does not decide them."""
        length = self.codec.planned_bytes(self.compressor.makes, T, self.dim)
        return None if length is None else 8 * (LENGTH_BYTES + length)

    def paper_bits(self, content: Compressed) -> float:
        """The paper's count for a message, from what was decoded."""
        return self.codec.paper_bits(content)


@dataclass(frozen=True)
class WithScalar(Compressed):
    """A number beside a vector, in one message.  Paper bits: the vector's + FPP."""

    scalar: float
    vector: Compressed

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.vector.dim

    @property
    def elements(self) -> int:
        return self.vector.elements

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        self.vector.add_to(out, scale)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return self.vector.paper_bits(fpp, indices_counted) + fpp

    def is_finite(self) -> bool:
        return isfinite(self.scalar) and self.vector.is_finite()


class ScalarLink(Link):
    """A link whose messages begin with a number, a float of the codec's; `vectors` is the one for what follows it."""

    vectors: Link

    def __init__(self, vectors: Link):
        super().__init__(vectors.compressor, vectors.codec, vectors.dim)
        object.__setattr__(self, "vectors", vectors)

    def at(self, **known: Any) -> "ScalarLink":
        return ScalarLink(self.vectors.at(**known))

    def write(self, compressed: Compressed) -> Bytes:
        assert isinstance(compressed, WithScalar)
        return np.concatenate([number_bytes(compressed.scalar, self.codec.float), self.vectors.write(compressed.vector)])

    def planned_wire_bits(self, T: Any) -> Any:
        bits = super().planned_wire_bits(T)
        return None if bits is None else bits + self.codec.float

    def read(self, data: Bytes, at: int = 0) -> tuple[Compressed, int]:
        scalar, at = read_number(data, at, self.codec.float)
        vector, end = self.vectors.read(data, at)
        return WithScalar(scalar, vector), end


def of_all_coordinates(link: Link) -> Link:
    """A link for whole vectors, in the floats of another link's codec."""
    return Link(compressors["identity"](), codecs.build({"name": "dense", "float": link.codec.float}, "codec"), link.dim)


def exact(link: Link) -> Link:
    """The same link, or one `of_all_coordinates` where its compressor loses something."""
    return link if link.compressor.omega(link.dim) == 0.0 else of_all_coordinates(link)
