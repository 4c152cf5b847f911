"""One direction of the network: vectors are compressed and encoded to bytes, and bytes are decoded."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.arrays import vector
from mpi_compress.core.errors import CorruptMessage, UserError, checked_at
from mpi_compress.core.fields import parameters
from mpi_compress.core.streams import Round
from mpi_compress.messages.codecs import Codec, codecs
from mpi_compress.messages.compressors import Compressor, compressors
from mpi_compress.messages.compressors.base import BulkCompressor
from mpi_compress.messages.fields import Reader, number_bytes
from mpi_compress.messages.kinds import Bytes, Compressed, Dense, Sparse, SparseRows, Vector, WithScalar, no_coordinates

LENGTH_BYTES = 4  # the length that precedes each message


@dataclass(eq=False, slots=True)
class Message:
    """The bytes that master and workers exchange. No bytes at all say nothing: `SILENT`. `content` keeps what was decoded: a sender
    that needs what its receiver will see, and a receiver in the same process, decode once. `refusal` says, in the sender's process
    alone, why a message is `REFUSED`."""

    data: Bytes
    content: Compressed | None = field(default=None, repr=False)
    refusal: OverflowError | None = None

    @property
    def wire_bits(self) -> int:
        """8 · (the 4-byte length + the bytes), padding included."""
        return 8 * (LENGTH_BYTES + self.data.size)

    @property
    def is_silent(self) -> bool:
        return self.data.size == 0 and not self.is_refused

    @property
    def is_refused(self) -> bool:
        """True if the values could not be encoded, so that the round has no update."""
        return self.data is REFUSED


_parameters = cache(parameters)
REFUSED = np.empty(0, dtype=np.uint8)
"""The bytes of a message whose values could not be encoded; the array itself says so, not its length."""

SILENT = Message(np.empty(0, dtype=np.uint8))
"""The message of a node that says nothing, on any link: 4 bytes on the wire, its length 0; it decodes to the vector 0."""


def attempt(send: Callable[..., Message], *arguments: Any) -> Message:
    """The message that `send` returns; if it overflows, a refused message that keeps the error."""
    try:
        return send(*arguments)
    except OverflowError as error:
        return Message(REFUSED, refusal=error)


@dataclass(frozen=True)
class Link:
    """A compressor and a codec, which fix the type of the messages in one direction, for vectors (dim,)."""

    compressor: Compressor
    codec: Codec
    dim: int
    parts: tuple["Link", ...] = field(default=(), repr=False, kw_only=True)  # the links whose messages this one's messages hold

    def at(self, **known: Any) -> "Link":
        """This link with compressor parameters that both ends know in this round, such as `sigma`; they cost no bits."""
        for name in known:
            if name not in (has := _parameters(type(self.compressor))):
                raise UserError(f"{self.compressor.name} has no parameter {name}; it has {', '.join(has) or 'none'}")
        return type(self)(self.compressor.bound_to(**known), self.codec, self.dim)

    def at_once(self, **known: Any) -> "Link":
        """`at`, made once for all that ask for the same in a row."""
        if self._latest[0] != known:
            self._latest[:] = known, self.at(**known)
        return self._latest[1]

    @cached_property
    def _latest(self) -> list[Any]:
        return [None, self]

    @cached_property
    def whole(self) -> "Link":
        """The link for whole vectors in the floats of this one's codec."""
        return Link(compressors["identity"](), codecs["dense"](self.codec.float), self.dim)

    @cached_property
    def exact(self) -> "Link":
        """This link, or the `whole` one where its compressor loses something."""
        return self if self.compressor.omega(self.dim) == 0.0 else self.whole

    def start(self) -> Any:
        """What a node's compressor remembers before its first message; None for one without a state."""
        return self.compressor.start(self.dim)

    def compress(self, v: Vector, t: Round) -> Compressed:
        """C(v) of v (dim,), not encoded; OverflowError where finite numbers become infinite, as by the d/k of random-k."""
        c = self.compressor.applied(checked_at("pack", lambda: vector(v, self.dim)), t)
        kind, wanted = type(c), self.compressor.makes
        if kind is not wanted and not (issubclass(kind, wanted) or (_says_kind(self.codec) and self.codec.writes(kind))):
            why = f"a {kind.__name__} was given, and receivers read a {wanted.__name__}"
            raise UserError(f"{self.compressor.name}, compress: {why}; makes = {kind.__name__} in the class says otherwise")
        if type(c) is not Dense and not c.is_finite() and np.isfinite(v).all():
            raise OverflowError(f"{self.compressor.name} brings values of magnitude up to {np.abs(v).max():g} beyond floats")
        return c

    def pack(self, v: Vector | Compressed, t: Round) -> Message:
        """The message of v (dim,), or of a compressed vector; OverflowError: a finite value that the codec's floats cannot hold."""
        return self.encode(self.compressed(v, t))

    def compressed(self, v: Vector | Compressed, t: Round) -> Compressed:
        """C(v) of v (dim,) or of a compressed vector, as a kind that the codec can write."""
        if type(v) is np.ndarray or not isinstance(v, Compressed):  # an array is known at once; an abstract class asks longer
            return self.compress(v, t)
        again = v if self.compressor.name == "identity" else self.compress(v.dense(), t)
        if self.compressor.makes is Dense and not _says_kind(self.codec) and not isinstance(again, Dense):
            again = Dense(again.dense())
        return again

    def encode(self, compressed: Compressed) -> Message:
        """Encode a compressed vector; raises OverflowError where `pack` does."""
        if type(compressed) is Sparse and compressed.indices.size == 0:
            return self.nothing
        return Message(self.write(compressed))

    @cached_property
    def in_bulk(self) -> bool:
        """True if `pack_all` can pack many vectors by one call."""
        return isinstance(self.compressor, BulkCompressor) and self.codec.name == "fixed"

    def pack_all(self, vs: NDArray[np.float64], rows: NDArray[np.int64]) -> tuple[list[Message], SparseRows] | None:
        """Messages of some `rows` of vs (m, dim), and what the receiver sees, if `in_bulk`; None: `pack` refuses one of them."""
        compressor, codec = self.compressor, cast(Any, self.codec)
        assert isinstance(compressor, BulkCompressor)
        written = codec.encode_all(compressor.compress_all(vs, rows))
        if written is None:
            return None
        data, ends = written
        contents, starts = codec.decode_all(data, ends, self.dim), [0, *ends.tolist()]
        return [Message(data[a:b], c) for (a, b), c in zip(pairwise(starts), contents, strict=True)], contents

    @cached_property
    def nothing(self) -> Message:
        """The message of no coordinates, the most frequent one of a hard threshold; one object serves all."""
        message = Message(self.write(no_coordinates(self.dim)))
        self.unpack(message)
        return message

    def unpack(self, message: Message) -> Compressed:
        """What the receiver sees; CorruptMessage: bytes that the codec cannot have written."""
        if message.content is not None:
            return message.content
        if message.is_silent:
            return self.silence
        content, end = self.read(message.data)
        if end != message.data.size:
            raise CorruptMessage(f"{message.data.size - end} bytes are left over after a message of {end} bytes")
        message.content = content
        return content

    @property
    def silence(self) -> Compressed:
        """What a silent message decodes to."""
        return no_coordinates(self.dim)

    def write(self, compressed: Compressed) -> Bytes:
        """Encode by the codec."""
        return self.codec.encode(compressed)

    def read(self, data: Bytes, at: int = 0) -> tuple[Compressed, int]:
        """Decode from data[at] on: the vector, and where its bytes end."""
        return self.codec.decode(data, at, self.dim, self.compressor.makes, self.compressor.known(self.dim))

    def planned_wire_bits(self, T: Any) -> Any:
        """The wire bits of a message with T coordinates, T one number or an array; None: T alone does not decide them."""
        length = self.codec.planned_bytes(self.compressor.makes, T, self.dim)
        return None if length is None else 8 * (LENGTH_BYTES + length)

    def paper_bits(self, content: Compressed) -> float:
        """The paper's count for a message, from what was decoded."""
        return self.codec.paper_bits(content)


def _says_kind(codec: Codec) -> bool:
    """True if its messages themselves say whether they are sparse or dense."""
    return codec.name == "auto"


class ScalarLink(Link):
    """A link whose messages begin with a number, a float as the codec writes it; then comes a message of the link `vectors`."""

    def __init__(self, vectors: Link):
        super().__init__(vectors.compressor, vectors.codec, vectors.dim, parts=(vectors,))

    def at(self, **known: Any) -> Self:
        return type(self)(self.parts[0].at(**known))

    @property
    def silence(self) -> WithScalar:
        return WithScalar(0.0, no_coordinates(self.dim))

    def write(self, compressed: Compressed) -> Bytes:
        assert isinstance(compressed, WithScalar)
        return np.concatenate([number_bytes(compressed.scalar, self.codec.float_format), self.parts[0].write(compressed.vector)])

    def planned_wire_bits(self, T: Any) -> Any:
        bits = super().planned_wire_bits(T)
        return None if bits is None else bits + self.codec.float_format.bits

    def read(self, data: Bytes, at: int = 0) -> tuple[Compressed, int]:
        r = Reader(data, at, self.codec.float_format)
        scalar = r.number()
        vector, end = self.parts[0].read(data, r.at)
        return WithScalar(scalar, vector), end


class ChoosingLink(Link):
    """A link that chooses how to compress for each vector, and so takes one at a time."""

    in_bulk = False

    def at(self, **known: Any) -> Link:
        for name in known.keys() & _parameters(type(self.compressor)):
            raise UserError(f"{self.compressor.name}: budget tunes each message, so {name} cannot be set; leave one of them out")
        return super().at(**known) if known else self

    def pack(self, v: Vector | Compressed, t: Round) -> Message:
        return self.encode(self.compress(v.dense() if isinstance(v, Compressed) else v, t))
