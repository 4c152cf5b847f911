"""Checks of users' parts: their values are converted to the form that kernels expect, or refused."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.algorithms import Algorithm
from mpi_compress.core import arrays
from mpi_compress.core.arrays import shown
from mpi_compress.core.errors import UserError, checked_at
from mpi_compress.messages.kinds import Indices, Vector
from mpi_compress.messages.link import Link, Message
from mpi_compress.problem.objective import Objective, Point
from mpi_compress.problem.scaled_vector import ScaledVector
from mpi_compress.results.columns import TAKEN
from mpi_compress.saving.frames import dump
from mpi_compress.saving.saved_states import Expected, load
from mpi_compress.saving.state_kinds import attributes


class GuardedObjective(Objective):
    """The objective for a user's algorithm: points and rows are checked, and gradients are copies."""

    def value_and_gradient(self, x: Vector) -> tuple[float, Vector]:
        return self.at(Point(self.point(x)))

    def at(self, point: Point) -> tuple[float, Vector]:
        value, gradient = super().at(Point.at(self.point(point.x)))
        return value, gradient.copy()

    def gradient(self, x: Vector | ScaledVector, rows: NDArray[np.uint64] | None = None) -> Vector:
        return super().gradient(self.point(x), None if rows is None else self._rows(rows)).copy()

    def add_gradient(self, out: Vector, x: Vector | ScaledVector, rows: NDArray[np.uint64] | None) -> None:
        if not (isinstance(out, np.ndarray) and out.dtype == np.float64 and out.shape == (self.dim,) and out.flags.carray):
            raise UserError(f"add_gradient: out is {shown(out)}; it should be an array of float64 ({self.dim},) to write to")
        super().add_gradient(out, self.point(x), None if rows is None else self._rows(rows))

    def add_sparse_gradient(self, out: Vector, x: Vector | ScaledVector, rows: NDArray[np.uint64]) -> tuple[Indices, float]:
        return super().add_sparse_gradient(out, self.point(x), self._rows(rows))

    def point(self, x: Any) -> Any:
        """x as kernels expect it."""
        if isinstance(x, ScaledVector):
            return ScaledVector(self.point(x.v), x.scale)
        return checked_at("gradient", lambda: arrays.floats(x, (self.dim,), "coordinates of x"))

    def _rows(self, rows: Any) -> NDArray[np.uint64]:
        array = checked_at("gradient", lambda: arrays.whole(rows, (np.size(rows),), "rows"))
        most = len(self.rows) - 1
        if not (array.size and array.min() >= 0 and array.max() <= most):
            said = f"go from {array.min()} to {array.max()}" if array.size else "are none"
            raise UserError(f"gradient: rows {said}; they should be from 0 to {most}, of this worker's shard")
        return array.astype(np.uint64, copy=False)


def watched(algorithm: Algorithm) -> Algorithm:
    """The same algorithm; UserError if its methods give no states, messages or logs of the right kind."""
    name = getattr(algorithm, "name", type(algorithm).__name__)

    def watch(verb: str, look: Callable[..., str]) -> None:
        unwatched = getattr(algorithm, verb)

        def verb_and_look(*arguments: Any) -> Any:
            given = unwatched(*arguments)
            if complaint := look(given, *arguments):
                raise UserError(f"{name}, {verb}: {complaint}")
            return given

        object.__setattr__(algorithm, verb, verb_and_look)

    def message(given: Any, *_: Any) -> str:
        return "" if isinstance(given, Message) else f"{shown(given)} was given; it should be a message: return self.up.pack(…, t)"

    def answer(given: Any, *_: Any) -> str:
        return message(given).replace("self.up", "self.down")

    def answers(given: Any, *_: Any) -> str:
        n = algorithm.setting.n
        right = isinstance(given, list | tuple) and len(given) == n and all(isinstance(each, Message) for each in given)
        return "" if right else f"{shown(given)} was given; it should be a list of {n} messages, one to each worker in worker order"

    def numbers(given: Any, *_: Any) -> str:
        right = np.shape(given) == (len(algorithm.logs),) and all(np.isscalar(v) and np.isreal(v) for v in given)
        return "" if right else f"{shown(given)} was given; it should be a number for each of {', '.join(algorithm.logs)}"

    for verb, look in (("worker_sends", message), ("master_answers", answer), ("worker_logs", numbers)):
        watch(verb, look)
    if algorithm.answers_each:
        watch("answers", answers)
    watch("start", lambda given, x0: unsavable(given))
    for verb in ("start_worker", "start_master"):
        watch(verb, unsavable)
    return algorithm


def unsavable(state: Any, *others: Any) -> str:
    """Why a state could not be saved and given back as it is, "" if it can; `others` are saved apart from it."""
    try:
        load(dump(state), state, Expected(False, -1))
    except (TypeError, ValueError) as error:
        return f"its state cannot be saved in a checkpoint: {error}; dataclasses of arrays, numbers, lists and dicts can"
    arrays, elsewhere = list(_arrays(state)), list(_arrays(others))
    for i, one in enumerate(arrays):
        if any(one is not other and np.may_share_memory(one, other) for other in arrays[i + 1 :]):
            return "its state has arrays that share memory, which a checkpoint would part: keep one of them"
        if any(np.may_share_memory(one, other) for other in elsewhere):
            return "its state shares memory with another, which a checkpoint would part: keep a copy"
    return ""


def first_state(link: Link) -> Any:
    """What a node's compressor remembers before its first message.

    Raises:
        UserError: it cannot be saved, or `compress` does not take it.
    """
    compressor = link.compressor
    try:
        signature(compressor.compress).bind(*range(2 + compressor.has_state))
    except TypeError:
        has, state = ("a", ", state") if compressor.has_state else ("no", "")
        raise UserError(f"{compressor.name}: with {has} start(self, dim) it needs compress(self, v, t{state})") from None
    state = link.start()
    if compressor.has_state and (complaint := unsavable(state)):
        raise UserError(f"{compressor.name}, start: {complaint}")
    return state


def _arrays(state: Any) -> Iterator[NDArray[Any]]:
    """The arrays in a state."""
    if isinstance(state, np.ndarray):
        yield state
    elif is_dataclass(state) and not isinstance(state, type):
        yield from _arrays(list(attributes(state).values()))
    elif isinstance(state, Mapping):
        yield from _arrays(list(state.values()))
    elif isinstance(state, list | tuple | set):
        for each in state:
            yield from _arrays(each)


def check_logs(algorithm: Algorithm) -> None:
    """ValueError if the columns that an algorithm adds are no names, or those of other columns."""
    logs = algorithm.logs
    if isinstance(logs, str) or not all(isinstance(column, str) and column.isidentifier() for column in logs):
        raise ValueError(f'logs = {logs!r} should be names of columns, such as ("height",)')
    if taken := sorted(TAKEN.intersection(logs)):
        raise ValueError(f"logs: '{taken[0]}' is a column that every run has; give it another name")
