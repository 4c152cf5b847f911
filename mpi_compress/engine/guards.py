"""What parts that are not of this package hand over, brought into the form that kernels take for granted, or refused."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.algorithms import Algorithm
from mpi_compress.core.errors import UserError
from mpi_compress.core.registry import is_ours
from mpi_compress.core.streams import Round
from mpi_compress.engine.frames import unsavable
from mpi_compress.engine.rows import TAKEN
from mpi_compress.messages.costs import CostModel
from mpi_compress.messages.kinds import (
    Compressed,
    Dense,
    Drawn,
    Hybrid,
    Indices,
    Lattice,
    Levels,
    SignSparse,
    Sparse,
    Ternary,
    Vector,
)
from mpi_compress.messages.link import Bytes, Link, Message
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.scaled_vector import ScaledVector

_NUMBERS, _WHOLE = "fiu", "iu"  # NumPy's kinds


class GuardedLink(Link):
    """A link whose compressor, codec or user is not of this package."""

    in_bulk = False  # each vector is looked at

    def compress(self, v: Vector, t: Round) -> Compressed:
        with self._telling("pack"):
            v = read_only(v, self.dim)
        compressed = super().compress(v, t)
        with self._telling("compress", self.compressor):
            return well_formed(compressed, self.dim)

    def pack(self, v: Vector | Compressed, t: Round) -> Message:
        return super().pack(v, t) if isinstance(v, Compressed) else self.encode(self.compress(v, t))

    def encode(self, compressed: Compressed) -> Message:
        with self._telling("compress", self.compressor):
            compressed = self._expected(well_formed(compressed, self.dim))
        return super().encode(compressed)

    def _expected(self, compressed: Compressed) -> Compressed:
        """The same, if it is of the kind that receivers read."""
        kind, wanted = type(compressed), self.compressor.makes
        if issubclass(kind, wanted) or (self.codec.tells_kind and self.codec.writes(kind)):
            return compressed
        hint = f"; makes = {kind.__name__} in the class says otherwise" * (not is_ours(self.compressor))
        raise ValueError(f"a {kind.__name__} was given, and receivers read a {wanted.__name__}{hint}")

    def write(self, compressed: Compressed) -> Bytes:
        data = super().write(compressed)
        with self._telling("encode", self.codec):
            return raw(data)

    def read(self, data: Bytes, at: int = 0) -> tuple[Compressed, int]:
        try:
            read = super().read(data, at)
        except KeyError as missing:
            makes = self.compressor.makes.__name__
            raise UserError(
                f"{_name(self.compressor)}, known: {missing} is missing, and receivers need it to read a {makes}"
            ) from None
        with self._telling("decode", self.codec):
            if not (isinstance(read, tuple) and len(read) == 2):
                raise ValueError(f"{_shown(read)} was given; it should be the vector, and where its bytes end")
            return well_formed(read[0], self.dim), int(read[1])

    @contextmanager
    def _telling(self, verb: str, part: Any = None) -> Iterator[None]:
        """Raise a UserError with the part's name where what it gives is refused."""
        try:
            yield
        except ValueError as error:
            whose = "" if part is None or is_ours(part) else f"{_name(part)}, "
            raise UserError(f"{whose}{verb}: {error}") from None


class GuardedObjective(Objective):
    """One for an algorithm that is not of this package: points and rows are looked at, and gradients are copies."""

    def value_and_gradient(self, x: Vector) -> tuple[float, Vector]:
        value, gradient = super().value_and_gradient(self.point(x))
        return value, gradient.copy()

    def gradient(self, x: Vector | ScaledVector, rows: NDArray[np.uint64] | None = None) -> Vector:
        return super().gradient(self.point(x), None if rows is None else self._rows(rows)).copy()

    def add_gradient(self, out: Vector, x: Vector | ScaledVector, rows: NDArray[np.uint64] | None) -> None:
        if not (isinstance(out, np.ndarray) and out.dtype == np.float64 and out.shape == (self.dim,) and out.flags.carray):
            raise UserError(f"add_gradient: out is {_shown(out)}; it should be an array of float64 ({self.dim},) to write to")
        super().add_gradient(out, self.point(x), None if rows is None else self._rows(rows))

    def add_sparse_gradient(self, out: Vector, x: Vector | ScaledVector, rows: NDArray[np.uint64]) -> tuple[Indices, float]:
        return super().add_sparse_gradient(out, self.point(x), self._rows(rows))

    def point(self, x: Any) -> Any:
        """x as kernels take it."""
        try:
            if isinstance(x, ScaledVector):
                return ScaledVector(_floats(x.v, (self.dim,), "coordinates of x"), x.scale)
            return _floats(x, (self.dim,), "coordinates of x")
        except ValueError as error:
            raise UserError(f"gradient: {error}") from None

    def _rows(self, rows: Any) -> NDArray[np.uint64]:
        try:
            array = _array(rows, _WHOLE, (np.size(rows),), "rows")
        except ValueError as error:
            raise UserError(f"gradient: {error}") from None
        most = len(self.rows) - 1
        if not (array.size and array.min() >= 0 and array.max() <= most):
            said = f"go from {array.min()} to {array.max()}" if array.size else "are none"
            raise UserError(f"gradient: rows {said}; they should be from 0 to {most}, of this worker's shard")
        return array.astype(np.uint64, copy=False)


def watched(algorithm: Algorithm) -> Algorithm:
    """The same algorithm, whose states, messages and logs are looked at.

    Raises:
        UserError: from its verbs, where they give something else.
    """
    name = _name(algorithm)

    def watch(verb: str, look: Callable[..., str]) -> None:
        unwatched = getattr(algorithm, verb)

        def verb_and_look(*arguments: Any) -> Any:
            given = unwatched(*arguments)
            if complaint := look(given, *arguments):
                raise UserError(f"{name}, {verb}: {complaint}")
            return given

        object.__setattr__(algorithm, verb, verb_and_look)

    def message(given: Any, *_: Any) -> str:
        return "" if isinstance(given, Message) else f"{_shown(given)} was given; it should be a message: return self.up.pack(…, t)"

    def answer(given: Any, *_: Any) -> str:
        return message(given).replace("self.up", "self.down")

    def numbers(given: Any, *_: Any) -> str:
        right = np.shape(given) == (len(algorithm.logs),) and all(np.isscalar(v) and np.isreal(v) for v in given)
        return "" if right else f"{_shown(given)} was given; it should be a number for each of {', '.join(algorithm.logs)}"

    for verb, look in (("worker_sends", message), ("master_answers", answer), ("worker_logs", numbers)):
        watch(verb, look)
    watch("start", lambda given, x0: unsavable(given))
    for verb in ("start_worker", "start_master"):
        watch(verb, unsavable)
    return algorithm


def check_logs(algorithm: Algorithm) -> None:
    """Refuse columns of an algorithm's own that could not stand in a trace.

    Raises:
        ValueError: they are no names, or those of other columns.
    """
    logs = algorithm.logs
    if isinstance(logs, str) or not all(isinstance(column, str) and column.isidentifier() for column in logs):
        raise ValueError(f'logs = {logs!r} should be names of columns, such as ("height",)')
    if taken := sorted(TAKEN.intersection(logs)):
        raise ValueError(f"logs: '{taken[0]}' is a column that every run has; give it another name")


def check_cost(model: CostModel) -> None:
    """Refuse a cost that cannot be one.

    Raises:
        ValueError: for some payload it is no number from 0 on, or it falls as payloads grow.
    """
    payloads = np.array([0.0, 1.0, 8.0, 1e3, 1e5, 1e8])
    costs = np.array([_number(model.cost(payload), "costs") for payload in payloads.tolist()])
    wrong = ~(np.isfinite(costs) & (costs >= 0))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(f"{costs[at]:g} was given for {payloads[at]:g} bits; a cost should be a finite number from 0 on")
    if np.any(np.diff(costs) < 0):
        raise ValueError("it falls as payloads grow; a cost should not")
    try:
        together = _floats(model.cost(payloads), payloads.shape, "they")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"costs of an array of payloads: {error}; a cost takes numbers and arrays alike, as np.ceil does"
        ) from None
    if not np.array_equal(together, costs):
        raise ValueError("an array of payloads costs something else than its payloads one by one")


def read_only(v: Any, dim: int) -> Vector:
    """v (dim,) as float64 side by side in memory, that nobody can write to.

    Raises:
        ValueError: it is no vector of `dim` numbers.
    """
    out = _floats(v, (dim,), "coordinates").view()
    out.flags.writeable = False
    return out


def _name(part: Any) -> str:
    """What jobs call a part."""
    return getattr(part, "name", type(part).__name__)


def raw(data: Any) -> NDArray[np.uint8]:
    """What a codec wrote, bytes of any kind, as an array.

    Raises:
        ValueError: it is none.
    """
    if isinstance(data, bytes | bytearray | memoryview):
        return np.frombuffer(data, dtype=np.uint8)
    if not (isinstance(data, np.ndarray) and data.dtype == np.uint8 and data.ndim == 1):
        raise ValueError(f"{_shown(data)} was given; it should be bytes, or an array of uint8")
    return np.ascontiguousarray(data)


def well_formed(c: Any, dim: int) -> Compressed:
    """A compressed vector of `dim` coordinates with arrays of the right types and sizes, its indices increasing.

    Indices may come in any order, and arrays of any type that holds such numbers; kinds of others are passed on as they are.

    Raises:
        ValueError: what it holds is no such vector.
    """
    if not isinstance(c, Compressed):
        such = "such as Sparse(v.size, indices, v[indices]) or Dense(v)"
        raise ValueError(f"{_shown(c)} was given; it should be a Compressed, {such}")
    if isinstance(c, Dense):
        return Dense(_floats(c.values, (dim,), "values"))
    if isinstance(c, Levels):
        return _levels(c, dim)
    if isinstance(c, Ternary):
        signs = _whole(c.signs, (dim,), "signs", -1, 1)
        return Ternary(signs.astype(np.int8, copy=False), _number(c.magnitude, "magnitude"))
    if isinstance(c, Lattice):
        integers = _array(c.integers, _WHOLE, (dim,), "integers").astype(np.int64, copy=False)
        return Lattice(integers, float(c.sigma), float(c.radius), c.radius_sent, c.stochastic)
    if c.dim != dim:
        raise ValueError(f"dim = {c.dim} was given, and the vector has {dim} coordinates")
    if isinstance(c, Sparse):
        indices, order = _indices(c.indices, dim, "indices")
        return Sparse(dim, indices, _floats(c.values, indices.shape, "values")[order])
    if isinstance(c, SignSparse):
        indices, order = _indices(c.indices, dim, "indices")
        negative = _array(c.negative, "b", indices.shape, "negative")[order]
        return SignSparse(dim, indices, negative, _number(c.magnitude, "magnitude"))
    if isinstance(c, Hybrid):
        return _hybrid(c, dim)
    if isinstance(c, Drawn):
        return Drawn(dim, c.seed, c.kappa, _floats(c.values, c.indices.shape, "values"))
    return c


def _levels(c: Levels, dim: int) -> Levels:
    if not c.bucket >= 1:
        raise ValueError(f"bucket = {c.bucket} must be at least 1")
    levels = _whole(c.levels, (dim,), "levels", -(2**31) + 1, 2**31 - 1)
    short = levels.dtype == np.int8
    scales = _floats(c.scales, (-(-dim // c.bucket),), "scales")
    return Levels(levels if short else levels.astype(np.int32, copy=False), scales, c.bucket)


def _hybrid(c: Hybrid, dim: int) -> Hybrid:
    indices, order = _indices(c.indices, dim, "indices")
    sign_indices, sign_order = _indices(c.sign_indices, dim, "sign_indices")
    if np.intersect1d(indices, sign_indices).size:
        raise ValueError("an index is among indices and among sign_indices")
    values = _floats(c.values, indices.shape, "values")[order]
    negative = _array(c.negative, "b", sign_indices.shape, "negative")[sign_order]
    return Hybrid(dim, indices, values, sign_indices, negative, _number(c.magnitude, "magnitude"))


def _indices(given: Any, dim: int, name: str) -> tuple[Indices, Any]:
    """Increasing indices, and the order that makes them so."""
    array = np.asarray(given)
    if array.dtype.kind == "b":
        raise ValueError(f"{name} are true and false; they should be coordinates: np.flatnonzero gives them")
    array = _array(given, _WHOLE, (array.size,), name) if array.size else np.empty(0, dtype=np.uint32)
    order = slice(None) if np.all(array[:-1] < array[1:]) else np.argsort(array)
    array = array[order]
    if array.size and not (array[0] >= 0 and array[-1] < dim):
        raise ValueError(f"{name} go from {array[0]} to {array[-1]}; they should be coordinates from 0 to {dim - 1}")
    twice = array[1:][array[1:] == array[:-1]]
    if twice.size:
        raise ValueError(f"{name} have {twice[0]} more than once; each coordinate is sent once")
    return array.astype(np.uint32, copy=False), order


def _whole(given: Any, shape: tuple[int, ...], name: str, least: int, most: int) -> NDArray:
    array = _array(given, _WHOLE, shape, name)
    if array.size and not (array.min() >= least and array.max() <= most):
        raise ValueError(f"{name} go from {array.min()} to {array.max()}; they should be from {least} to {most}")
    return array


def _floats(given: Any, shape: tuple[int, ...], name: str) -> Vector:
    return _array(given, _NUMBERS, shape, name).astype(np.float64, copy=False)


def _number(given: Any, name: str) -> float:
    return float(_floats(given, (), name))


def _array(given: Any, kinds: str, shape: tuple[int, ...], name: str) -> NDArray:
    """An array of that shape, side by side in memory, whose type is of one of NumPy's `kinds`."""
    array = np.asarray(given)
    if array.shape != shape:
        raise ValueError(f"{name} have shape {array.shape}; it should be {shape}")
    if array.dtype.kind not in kinds and array.size:
        wanted = {"b": "true or false", _WHOLE: "whole numbers", _NUMBERS: "real numbers"}[kinds]
        raise ValueError(f"{name} are of type {array.dtype}; they should be {wanted}")
    return array.copy() if not array.flags.c_contiguous else array


def _shown(given: Any) -> str:
    return f"an array of {given.dtype} {given.shape}" if isinstance(given, np.ndarray) else f"{given!r:.60}"
