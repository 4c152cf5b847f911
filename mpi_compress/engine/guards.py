"""Checks of users' parts: their values are converted to the form that kernels expect, or refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.algorithms import Algorithm
from mpi_compress.core import arrays
from mpi_compress.core.arrays import shown
from mpi_compress.core.errors import UserError
from mpi_compress.engine.frames import unsavable
from mpi_compress.engine.problems import checked_at
from mpi_compress.messages.kinds import Indices, Vector
from mpi_compress.messages.link import Message
from mpi_compress.problem.objective import Objective, Point
from mpi_compress.problem.scaled_vector import ScaledVector
from mpi_compress.results.columns import TAKEN


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

    def numbers(given: Any, *_: Any) -> str:
        right = np.shape(given) == (len(algorithm.logs),) and all(np.isscalar(v) and np.isreal(v) for v in given)
        return "" if right else f"{shown(given)} was given; it should be a number for each of {', '.join(algorithm.logs)}"

    for verb, look in (("worker_sends", message), ("master_answers", answer), ("worker_logs", numbers)):
        watch(verb, look)
    watch("start", lambda given, x0: unsavable(given))
    for verb in ("start_worker", "start_master"):
        watch(verb, unsavable)
    return algorithm


def check_logs(algorithm: Algorithm) -> None:
    """ValueError if the columns that an algorithm adds are no names, or those of other columns."""
    logs = algorithm.logs
    if isinstance(logs, str) or not all(isinstance(column, str) and column.isidentifier() for column in logs):
        raise ValueError(f'logs = {logs!r} should be names of columns, such as ("height",)')
    if taken := sorted(TAKEN.intersection(logs)):
        raise ValueError(f"logs: '{taken[0]}' is a column that every run has; give it another name")
