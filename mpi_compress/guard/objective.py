"""Checks what a user's algorithm asks of an objective: points and rows become what kernels expect, or are refused."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core import arrays
from mpi_compress.core.arrays import shown
from mpi_compress.core.errors import UserError, checked_at
from mpi_compress.messages.kinds import Indices, Vector
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.points import Point
from mpi_compress.problem.scaled_vector import ScaledVector


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
        if not self.gradients_are_sparse:
            raise UserError("add_sparse_gradient: the gradients of this function are not sparse, as gradients_are_sparse says")
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
