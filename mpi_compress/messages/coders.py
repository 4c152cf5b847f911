"""A compressor with a codec, for arrays of any program: without a job, a run or MPI."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from secrets import randbits
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core import arrays
from mpi_compress.core.errors import CorruptMessage, UserError, checked_at
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.messages.batch import Message, batch_of
from mpi_compress.messages.codecs import Codec
from mpi_compress.messages.compressors import Compressor
from mpi_compress.messages.explained import explained
from mpi_compress.messages.from_tables import parts_of
from mpi_compress.messages.kinds import Bytes, Vector
from mpi_compress.messages.link import Link

F = TypeVar("F", np.float32, np.float64)
Floats = NDArray[np.float32] | Vector
Data = bytes | bytearray | memoryview | Bytes
Draws = int | np.random.Generator | None
_MOST = 2**32 - 1  # coordinates: indices are of 32 bits
_WHOLE = (int, np.integer)


@dataclass(frozen=True)
class Coder:
    """Compresses arrays to bytes, and reads them back. It keeps no state: one coder serves all arrays, of any size. `coder` makes
    one from the names that jobs use."""

    compressor: Compressor
    codec: Codec
    _links: dict[int, Link] = field(default_factory=dict, init=False, repr=False, compare=False)  # of the last size

    def start(self, size: int) -> Any:
        """A new state for `encode`, of a compressor that has one; else None."""
        return self._link(_size(size)).start()

    def encode(self, v: Floats, rng: Draws = None, state: Any = None, k: int = 0) -> bytes:
        """C(v) of v (d,), float32 or float64, as bytes.

        Args:
            rng: what random choices are drawn from: a seed, which gives the same bytes each time; a generator, which goes on from
                call to call; None: a seed that nobody knows. A compressor that draws nothing ignores it.
            state: what `start` gave, which the compressor changes; None: a new one.
            k: the round, for a compressor that depends on it.

        Raises:
            UserError: v is no such array, or the compressor's parameters cannot be meant for d coordinates.
            OverflowError: a finite value that the codec's floats cannot hold.
        """
        return self._packed(v, rng, k, state)[1].raw.tobytes()

    @overload
    def decode(self, data: Data, size: int) -> Vector: ...
    @overload
    def decode(self, data: Data, size: int, dtype: type[F]) -> NDArray[F]: ...
    def decode(self, data: Data, size: int, dtype: Any = np.float64) -> NDArray:
        """The array (size,) that `encode` wrote, as an array of this dtype, float64 or float32.

        A value that float32 cannot hold becomes infinite, if float32 is asked for.

        Raises:
            CorruptMessage: bytes that this coder cannot have written for so many coordinates.
        """
        return self.decode_into(data, np.zeros(_size(size), dtype))

    def decode_into(self, data: Data, out: NDArray[F], scale: float = 1.0) -> NDArray[F]:
        """Add `scale` times the array that `encode` wrote to out (d,), float32 or float64; returns out.

        The mean of n messages is n such calls with scale = 1/n. Nothing of d numbers is made for a message of few coordinates.

        Raises:
            CorruptMessage: as `decode`; out is as it was.
        """
        link = self._link(_size(out.size))
        message = checked_at("decode", batch_of, data)
        if not message.size:
            raise CorruptMessage("there are no bytes")
        content = link.unpack(message)
        if out.dtype == np.float64 and out.flags.c_contiguous:
            content.add_to(out, scale)  # type: ignore[arg-type]
            return out
        with np.errstate(over="ignore"):
            if (sparse := content.sparse()) is not None:
                out[sparse.indices.astype(np.intp)] += (scale * sparse.values).astype(out.dtype)  # NumPy adds slowly at uint32
            else:
                out += (scale * content.dense()).astype(out.dtype)
        return out

    def bits(self, v: Floats, rng: Draws = None, k: int = 0) -> int:
        """8 · the bytes that `encode` gives. (A run counts 32 bits more for each message, its length.)"""
        return 8 * len(self.encode(v, rng, k=k))

    def paper_bits(self, v: Floats, rng: Draws = None, k: int = 0) -> float:
        """The bits of this message by the formula of the compressor's paper."""
        link, message = self._packed(v, rng, k)
        return link.paper_bits(link.unpack(message))

    def explain(self, v: Floats, rng: Draws = None, k: int = 0) -> str:
        """The message of v (d,) taken apart, as a table: what each field of its bytes is and holds, and its bits."""
        link, message = self._packed(v, rng, k)
        return explained(link, message)

    def _packed(self, v: Floats, rng: Draws, k: int, state: Any = None) -> tuple[Link, Message]:
        array = _vector(v)
        link = self._link(array.size)
        t = Round(k, Streams(_seed(rng)), Role.WORKER, state=link.start() if state is None else state)
        return link, link.pack(array, t)

    def _link(self, dim: int) -> Link:
        """The link for vectors (dim,)."""
        if (link := self._links.get(dim)) is None:
            checked_at(self.compressor.name, self.compressor.check, dim)
            link = Link(self.compressor, self.codec, dim)
            self._links.clear()
            self._links[dim] = link
        return link


def coder(compressor: str | Mapping[str, Any], *, codec: Any = None, float: int | str | None = None, **parameters: Any) -> Coder:
    """A coder of parts by the names that jobs use: `coder("top-k", k=10, codec="rice", float=32)`.

    Args:
        compressor: its name, with `parameters` of its own; or a table of both, as in a job.
        codec: its name, or a table with its parameters; None: the codec that the compressor's paper counts.
        float: the codec's floats, 16, "bf16", 32 or 64 (64, unless the codec's table says otherwise).

    Raises:
        UserError: no such part or parameter, or a codec that cannot write what the compressor makes.
    """
    if not isinstance(compressor, str | Mapping):
        raise UserError(f"coder: {compressor!r} was given; the name of a compressor is required, such as 'top-k', or a table")
    table = {**({"name": compressor} if isinstance(compressor, str) else compressor), **parameters}
    if float is not None:
        codec = {**({"name": codec} if isinstance(codec, str) else codec or {}), "float": float}
    return Coder(*parts_of(table, codec, "coder"))


def _vector(v: Any) -> Vector:
    if not (isinstance(v, np.ndarray) and v.dtype in (np.float32, np.float64) and v.ndim == 1):
        raise UserError(f"encode: {arrays.shown(v)} was given; it should be an array (d,) of float32 or float64, as v.ravel() is")
    _size(v.size)
    return np.ascontiguousarray(v, dtype=np.float64)


def _size(size: Any) -> int:
    if not isinstance(size, _WHOLE) or not 1 <= size <= _MOST:
        raise UserError(f"coder: {size!r} coordinates; there should be from 1 to {_MOST}")
    return int(size)


def _seed(rng: Any) -> int:
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    if rng is None:
        return randbits(64)
    if not isinstance(rng, _WHOLE) or isinstance(rng, bool) or rng < 0:
        raise UserError(f"encode: rng = {rng!r} was given; it should be a seed from 0 on, a numpy.random.Generator or None")
    return int(rng)
