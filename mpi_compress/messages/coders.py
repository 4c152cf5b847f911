"""A compressor with a codec, for arrays of any program: without a job, a run or MPI; and what it really sends."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from secrets import randbits
from statistics import fmean
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core import arrays
from mpi_compress.core.errors import CorruptMessage, UserError, checked_at
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.core.tables import plain
from mpi_compress.messages.codecs import Codec, codecs
from mpi_compress.messages.compressors import Compressor, compressors
from mpi_compress.messages.explained import explained
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Link, Message

F = TypeVar("F", np.float32, np.float64)
Floats = NDArray[np.float32] | NDArray[np.float64]
Data = bytes | bytearray | memoryview | NDArray[np.uint8]
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
        return self._packed(v, rng, k, state)[1].data.tobytes()

    @overload
    def decode(self, data: Data, size: int) -> NDArray[np.float64]: ...
    @overload
    def decode(self, data: Data, size: int, dtype: type[F]) -> NDArray[F]: ...
    def decode(self, data: Data, size: int, dtype: Any = np.float64) -> NDArray[Any]:
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
        message = checked_at("decode", lambda: arrays.raw(data))
        if not message.size:
            raise CorruptMessage("there are no bytes")
        content = link.unpack(Message(message))
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
        return explained(link, message.data)

    def _packed(self, v: Floats, rng: Draws, k: int, state: Any = None) -> tuple[Link, Message]:
        array = _vector(v)
        link = self._link(array.size)
        t = Round(k, Streams(_seed(rng)), Role.WORKER, state=link.start() if state is None else state)
        return link, link.pack(array, t)

    def _link(self, dim: int) -> Link:
        """The link for vectors (dim,)."""
        if (link := self._links.get(dim)) is None:
            checked_at(self.compressor.name, lambda: self.compressor.check(dim))
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
    try:
        return Coder(*parts_of(table, codec, "coder"))
    except UserError as error:
        if table.get("name") in compressors:
            raise
        raise UserError(f"{error}; a part of your own is known once its module is imported") from None


def parts_of(compressor: Any, codec: Any, where: str) -> tuple[Compressor, Codec]:
    """A compressor and a codec from their tables; without a name, or as None, the codec is the compressor's own.

    Raises:
        UserError: with the place `where` in the job: a part that cannot be built, or a codec that cannot write what the compressor
            makes.
    """
    built = compressors.build(compressor, f"{where}.compressor")
    spec = built.codec if codec is None else codec
    if isinstance(spec, Mapping) and "name" not in spec:
        spec = {"name": built.codec, **spec}
    writer = codecs.build(spec, f"{where}.codec")
    if not writer.writes(built.makes):
        can = ", ".join(name for name in codecs if is_written(name, built.makes))
        raise UserError(f"{where}.codec: '{writer.name}' cannot write what '{built.name}' makes; these can: {can}")
    return built, writer


def is_written(name: str, kind: type[Compressed]) -> bool:
    """True if a codec, without parameters, writes messages of a kind."""
    try:
        return codecs[name]().writes(kind)
    except TypeError:  # a codec of the user's own that needs parameters
        return False


@dataclass(frozen=True)
class Size:
    """Means over vectors."""

    bits: float  # of a message
    error: float  # ‖w − v‖²/‖v‖², w what the receiver sees of v


@dataclass(frozen=True)
class Measured:
    """Sizes of messages by name; `print` shows them as a table.

    "sent" is what the coder sends, "paper" what the formula of the compressor's paper says. Then come all codecs that can write
    these messages, by their names, and the vectors themselves, as "dense bf16" and "dense float32".
    """

    dim: int  # d, the coordinates of each vector
    sizes: Mapping[str, Size]
    float: int | str  # of the codecs: 64, 32, 16 or "bf16"

    def __getitem__(self, name: str) -> Size:
        return self.sizes[name]

    def __str__(self) -> str:
        rows = [[name, f"{s.bits:,.0f}", f"{s.bits / self.dim:.3g}", f"{s.error:.1e}"] for name, s in self.sizes.items()]
        table = plain(["message", "bits", "a coordinate", "error"], rows, "lrrr")
        return "\n".join([*table, f"floats of {self.float} bits; d = {self.dim:,}; without the 32 bits of a message's length"])


def measure(compressor: Coder | str | Mapping[str, Any], vectors: Sequence[Floats], *, rng: int = 0, **parameters: Any) -> Measured:
    """Encode vectors (d,), such as the gradients of a training run, and say how many bits their messages take.

    The first vector is that of round 0, the next one that of round 1, and so on.

    Args:
        compressor: a coder, or what `coder` takes, with the same `parameters`.
        rng: the seed of random choices, the same for every codec.

    Raises:
        UserError: there are no vectors, or they differ in size; and where `coder` and `encode` raise it.
    """
    own = compressor if isinstance(compressor, Coder) else coder(compressor, **parameters)
    if isinstance(vectors, np.ndarray) and vectors.ndim == 1:
        raise UserError("measure: one vector was given; a list of vectors is required: [v]")
    dims = sorted({v.size for v in vectors})
    if len(dims) != 1:
        raise UserError(f"measure: vectors of {dims or 'no'} coordinates were given; all should have the same number")
    written = [name for name in codecs if is_written(name, own.compressor.makes)]
    by_codec = {name: Coder(own.compressor, codecs.build({"name": name, "float": own.codec.float}, "measure")) for name in written}
    dense = {f"dense {name}": coder("identity", codec="dense", float=held) for name, held in (("bf16", "bf16"), ("float32", 32))}

    def size(each: Coder, bits: Callable[[Coder, Floats, int], float] = lambda each, v, k: each.bits(v, rng, k)) -> Size:
        rounds = [*enumerate(vectors)]
        return Size(fmean(bits(each, v, k) for k, v in rounds), fmean(_error(each, v, rng, k) for k, v in rounds))

    ranked = sorted(((name, size(each)) for name, each in by_codec.items()), key=lambda item: item[1].bits)
    paper = size(own, lambda each, v, k: each.paper_bits(v, rng, k))
    sizes = {"sent": size(own), "paper": paper, **dict(ranked), **{name: size(d) for name, d in dense.items()}}
    return Measured(dims[0], sizes, own.codec.float)


def _error(each: Coder, v: Floats, rng: int, k: int) -> float:
    """‖w − v‖²/‖v‖²; 0 for v = 0 that comes back as it is."""
    w = each.decode(each.encode(v, rng, k=k), v.size)
    wrong, all_of_it = (float(np.dot(u, u)) for u in (w - v, v.astype(np.float64)))
    return wrong / all_of_it if all_of_it else wrong


def _vector(v: Any) -> Vector:
    if not (isinstance(v, np.ndarray) and v.dtype in (np.float32, np.float64)):
        raise UserError(f"encode: {arrays.shown(v)} was given; it should be an array of float32 or float64")
    if v.ndim != 1:
        raise UserError(f"encode: {arrays.shown(v)} was given; it should have one axis: v.ravel()")
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
