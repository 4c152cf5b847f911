"""One direction of the network: vectors are compressed and encoded to bytes, and bytes are decoded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core import arrays
from mpi_compress.core.arrays import in_turn
from mpi_compress.core.errors import CorruptMessage, UserError, checked_at
from mpi_compress.core.fields import parameters
from mpi_compress.core.streams import Round, Rounds
from mpi_compress.messages.batch import LENGTH_BYTES, Batch, attempt, side_by_side, together
from mpi_compress.messages.codecs import Codec, codecs
from mpi_compress.messages.compressors import Compressor, compressors
from mpi_compress.messages.fields import Field, Reader, joined, numbers
from mpi_compress.messages.kinds import Compressed, Dense, Sparse, Vector, WithScalar, no_coordinates
from mpi_compress.messages.kinds.base import C

_parameters = cache(parameters)


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

    def compress(self, v: Vector, t: Round | Rounds) -> Compressed:
        """C(v) of v (dim,), or of rows (m, dim), not encoded; OverflowError where finite numbers become infinite, as by the d/k of
        random-k."""
        c = self._applied(v, t)
        if type(c) is not self.compressor.makes:
            self.refuse_other_kind(c)
        return c if type(c) is Dense else self.within_floats(v, c)

    def refuse_other_kind(self, c: Compressed) -> None:
        """UserError if receivers would read C(v) as a vector of another kind."""
        kind, wanted = type(c), self.compressor.makes
        if not (issubclass(kind, wanted) or self._is_read(c)):
            why = f"a {kind.__name__} was given, and receivers read a {wanted.__name__}"
            raise UserError(f"{self.compressor.name}, compress: {why}; makes = {kind.__name__} in the class says otherwise")

    def within_floats(self, v: Vector, c: C) -> C:
        """c = C(v); OverflowError where finite numbers have become infinite."""
        if not np.all(finite := c.is_finite()):
            for row in np.atleast_2d(v)[~np.atleast_1d(finite)]:
                if np.isfinite(row).all():
                    most = np.abs(row).max()
                    raise OverflowError(f"{self.compressor.name} returns NaN or infinity for values of magnitude up to {most:.3g}")
        return c

    def _applied(self, v: Vector, t: Any) -> Compressed:
        if np.ndim(v) == 2:
            return self.compressor.compress_rows(v, t)
        return self.compressor.applied(checked_at("pack", lambda: arrays.vector(v, self.dim)), t)

    def _is_read(self, c: Compressed) -> bool:
        """True if receivers read vectors of these kinds, though the compressor says that it makes another one."""
        each = {type(part) for part in getattr(c, "parts", [c])}
        return (_says_kind(self.codec) and all(map(self.codec.writes, each))) or each == {self.compressor.makes}

    def pack(self, v: Any, t: Any) -> Batch:
        """The message of v (dim,), or those of rows (m, dim); or of what is compressed already.

        Raises:
            OverflowError: v is one vector, with a finite value that the codec's floats cannot hold; such rows are `refused`.
        """
        try:
            return self.encode(self.compressed(v, t))
        except OverflowError:
            if not (type(v) is np.ndarray and v.ndim == 2):
                raise
            each = [attempt(self.pack, row, t[i]) for i, row in enumerate(v)]
            zero = np.zeros(self.dim)
            return together([replace(self.pack(zero, t[i]), refused=b.refused) if b.refused else b for i, b in enumerate(each)])

    def compressed(self, v: Any, t: Any) -> Compressed:
        """C(v) of v (dim,), of rows (m, dim), or of what is compressed already, as a kind that the codec can write."""
        if type(v) is np.ndarray or not isinstance(v, Compressed):  # an array is known at once; an abstract class asks longer
            return self.compress(v, t)
        again = v if self.compressor.name == "identity" else self.compress(v.dense(), t)
        if self.compressor.makes is Dense and not _says_kind(self.codec) and not isinstance(again, Dense):
            again = Dense(again.dense())
        return again

    def encode(self, compressed: Compressed) -> Batch:
        """Encode what is compressed; raises OverflowError where `pack` does."""
        return Batch(*self.write(compressed.as_rows()), one=compressed.rows is None)

    def unpack(self, batch: Batch) -> Compressed:
        """What the receiver sees: a vector of one message, else rows, of those that are not silent; CorruptMessage: bytes that the
        codec cannot have written."""
        if batch.pieces:
            batch.content = side_by_side([self.unpack(piece).as_rows() for piece in batch.pieces if piece.size])
        if batch.content is None:
            lengths = batch.lengths
            some = lengths > 0
            if not some.any():
                return self.silence if batch.one else _no_rows(self.dim)
            r = Reader(batch.data, (batch.ends - lengths)[some], self.codec.float_format, batch.ends[some])
            content = self.read(r)
            if (left := r.ends - r.at).any():
                size = lengths[some][left != 0][0]
                raise CorruptMessage(f"{left[left != 0][0]} bytes are left over after a message of {size} bytes")
            batch.content = content[0] if batch.one else content
        return batch.content

    @property
    def silence(self) -> Compressed:
        """What a silent message decodes to."""
        return no_coordinates(self.dim)

    def write(self, rows: Compressed) -> Field:
        """Encode rows by the codec."""
        return self.codec.write(rows)

    def read(self, r: Reader) -> Compressed:
        """Decode the rows whose messages `r` is at."""
        r.form = self.codec.float_format
        return self.codec.read(r, self.dim, self.compressor.makes, self.compressor.known(self.dim))

    def planned_wire_bits(self, T: Any) -> Any:
        """The wire bits of a message with T coordinates, T one number or an array; None: T alone does not decide them."""
        length = self.codec.planned_bytes(self.compressor.makes, T, self.dim)
        return None if length is None else 8 * (LENGTH_BYTES + length)

    def paper_bits(self, content: Compressed) -> Any:
        """The paper's count for what was decoded; of rows (m,)."""
        return self.codec.paper_bits(content)


def _says_kind(codec: Codec) -> bool:
    """True if its messages themselves say whether they are sparse or dense."""
    return codec.name == "auto"


@cache
def _no_rows(dim: int) -> Sparse:
    return Sparse(dim, np.empty(0, dtype=np.uint32), np.empty(0), in_turn(0))


@dataclass(frozen=True, eq=False)
class Arrived(Sequence[Compressed]):
    """What the messages of all n workers decode to, in worker order; those of the silent ones to the vector 0."""

    content: Compressed  # rows, of those that have sent something
    who: NDArray[np.int64]  # these
    n: int
    silence: Compressed

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: Any) -> Any:
        row = int(np.searchsorted(self.who, range(self.n)[i]))
        return self.content[row] if row < self.who.size and self.who[row] == range(self.n)[i] else self.silence

    def of(self, part: Callable[[Any], Compressed]) -> "Arrived":
        """A part of each, such as the first vector of a pair."""
        return replace(self, content=part(self.content), silence=part(self.silence)) if self.who.size else self


def arrived(link: Link, batch: Batch) -> Arrived:
    """What the messages of all workers decode to by their link."""
    return Arrived(link.unpack(batch), np.flatnonzero(batch.lengths), len(batch), link.silence)


class ScalarLink(Link):
    """A link whose messages begin with a number, a float as the codec writes it; then comes a message of the link `vectors`."""

    def __init__(self, vectors: Link):
        super().__init__(vectors.compressor, vectors.codec, vectors.dim, parts=(vectors,))

    def at(self, **known: Any) -> Self:
        return type(self)(self.parts[0].at(**known))

    @property
    def silence(self) -> WithScalar:
        return WithScalar(0.0, no_coordinates(self.dim))

    def write(self, rows: Any) -> Field:
        return joined(numbers(rows.scalar, self.codec.float_format), self.parts[0].write(rows.vector))

    def planned_wire_bits(self, T: Any) -> Any:
        bits = super().planned_wire_bits(T)
        return None if bits is None else bits + self.codec.float_format.bits

    def read(self, r: Reader) -> Compressed:
        r.form = self.codec.float_format
        return WithScalar(r.numbers(), self.parts[0].read(r))


class ChoosingLink(Link):
    """A link that chooses how to compress for each vector."""

    def at(self, **known: Any) -> Link:
        for name in known.keys() & _parameters(type(self.compressor)):
            raise UserError(f"{self.compressor.name}: budget tunes each message, so {name} cannot be set; leave one of them out")
        return super().at(**known) if known else self

    def compressed(self, v: Any, t: Any) -> Compressed:
        return self.compress(v.dense() if isinstance(v, Compressed) else v, t)
