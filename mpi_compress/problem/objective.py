"""f_i on one shard: value and gradient; the mean over shards is f exactly, also where their sizes differ."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from mpi_compress.core import arrays
from mpi_compress.core.clock import now
from mpi_compress.core.errors import UserError, checked_at
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Indices, Sparse, Vector
from mpi_compress.problem.data_terms import data_term
from mpi_compress.problem.gradient_room import LastGradient
from mpi_compress.problem.mean_loss import MeanLoss
from mpi_compress.problem.penalties import Penalty
from mpi_compress.problem.points import Point, Standing
from mpi_compress.problem.rows import Rows
from mpi_compress.problem.scaled_vector import ScaledVector


@dataclass(slots=True)
class Evaluated:
    """The value of f_i at a point, kept with its gradient."""

    point: Point
    value: float
    seconds: float  # that it took
    charged: bool  # True if the algorithm's clock ran meanwhile
    taken: bool = False  # True once the algorithm has asked for it


class Neighbours(Protocol):
    """A way to evaluate the functions of all workers hosted here together."""

    def evaluate(self, point: Point, charged: bool) -> bool:
        """Evaluate all of them at a point and let each `keep` its value; False if that was not done."""


class Objective:
    """f_i(x) = weight · Σ_{j ∈ D_i} ℓ_j(x) + (µ/2)‖x‖² + r(x), with weight = n/N and a smooth penalty r, if there is one.

    ℓ_j(x) is a loss ℓ(y_j, a_j·x) of a margin, or a model's loss of row j.

    A returned gradient is valid until the next call, of this function or of another one with its room. The last evaluation
    is kept with a copy of its point, and is found again by any equal point: a round that is logged needs f and ∇f at x, and does
    not pay twice. What the algorithm asks for again, where x stands still, is computed again. `samples` and `seconds` count what
    the algorithm asked for, kept gradients included; `borrowed` is the part of `seconds` that an evaluation spent.

    Args:
        careful: gradients are new arrays, and rows are looked at, as a method of a user's needs.
    """

    def __init__(
        self, rows: Rows, loss: MeanLoss, weight: float, mu: float, penalty: Penalty | None = None, careful: bool = False
    ):
        self.rows, self.weight, self.mu = rows, float(weight), float(mu)
        self.loss: Any = loss
        self.careful = careful
        self.penalty = penalty
        self.term = data_term(rows, loss, self.weight, self.mu)
        self.neighbours: Neighbours | None = None
        self.standing = Standing()  # what does not change while a worker sends; one object for all workers of a process
        self.round: Round | None = None  # the worker's, whose draws a random model uses
        self.samples = 0
        self.seconds = 0.0
        self.borrowed = 0.0
        self.dim = self.term.dim
        self.last = LastGradient(self.term)
        self._holds_few = self.term.holds_few and self.penalty is None
        self._n = len(rows)
        self._work = np.empty(0)  # (d,) zeros, once it is needed
        self._kept: Evaluated | None = None
        self._wasted = False  # True if something computed ahead was dropped

    def value_and_gradient(self, x: Vector) -> tuple[float, Vector]:
        """f_i(x) and ∇f_i(x) (d,), off the algorithm's count."""
        value, gradient = self.at(Point.at(_point(x, self.dim) if self.careful else x))
        return value, gradient.copy() if self.careful else gradient

    def at(self, point: Point) -> tuple[float, Vector]:
        """f_i and ∇f_i (d,) at a point, off the algorithm's count."""
        kept = self._found(point) or self._evaluated_by_neighbours(point, charged=False)
        if kept is None:
            start = now()
            value, last = self._compute(point), self.last.vector
            self.keep(Evaluated(point, value, now() - start, charged=False))
            return value, last
        return kept.value, self.last.vector

    def elsewhere(self, x: Vector) -> tuple[float, Vector]:
        """f_i and ∇f_i (d,), a new array, at another point, off every count and clock; what is kept stays."""
        gradient = np.empty(self.dim)
        value = self.term.evaluate(x, gradient, None)
        if self.penalty is not None:
            value, gradient = value + self.penalty.value(x), gradient + self.penalty.gradient(x)
        return value, gradient

    def gradient(self, x: Vector | ScaledVector, rows: NDArray[np.uint64] | None = None) -> Vector:
        """∇f_i(x) (d,), or the mean over a minibatch of `rows` in place of the mean over the shard."""
        x = _point(x, self.dim) if self.careful else x
        if rows is None:
            g = self._full_gradient(self.standing.point(x.dense() if isinstance(x, ScaledVector) else x))
        else:
            self.drop()
            g = self.last.buffer
            g[:] = 0.0
            self.add_gradient(g, x, rows)
        return g.copy() if self.careful else g

    def _full_gradient(self, point: Point) -> Vector:
        draw, kept = self._draw(), None
        if draw is None:
            kept = self._found(point)
            if kept is None or kept.taken:
                kept = self._evaluated_by_neighbours(Point.at(point.x), charged=True) if self.neighbours is not None else None
        if kept is None:
            start = now()
            self._compute(point, draw)
            last = self.last.vector
            self.charge(now() - start)
            return last
        if not kept.charged:
            self.borrowed += kept.seconds
        self._kept = Evaluated(kept.point, kept.value, kept.seconds, charged=False, taken=True)
        self.charge(kept.seconds)
        return self.last.vector

    def add_gradient(self, out: Vector, x: Vector | ScaledVector, rows: NDArray[np.uint64] | None) -> None:
        """out += `gradient(x, rows)`; out (d,) must not be the array that `gradient` returns."""
        if rows is None:
            out += self.gradient(x)
            return
        _refuse_other_lengths(self.dim, out, x)
        rows = _minibatch(rows, self._n) if self.careful else rows
        start = now()
        self.term.add_gradient(out, x, rows, self._draw())
        if self.penalty is not None:
            out += self.penalty.gradient(x.dense() if isinstance(x, ScaledVector) else x)
        self.charge(now() - start, rows.size)

    @property
    def gradients_are_sparse(self) -> bool:
        """True if the gradient of a minibatch is 0 but on the coordinates that its rows hold."""
        return self.term.is_sparse and self.penalty is None

    def add_sparse_gradient(self, out: Vector, x: Vector | ScaledVector, rows: NDArray[np.uint64]) -> tuple[Indices, float]:
        """`add_gradient` where `gradients_are_sparse`: the increasing coordinates that the rows hold, and what ‖out‖² grew by."""
        _refuse_other_lengths(self.dim, out, x)
        rows = _minibatch(rows, self._n) if self.careful else rows
        start = now()
        held, growth = self.term.add_sparse_gradient(out, x, rows)
        self.charge(now() - start, rows.size)
        return held, growth

    def sparse_gradient(self, x: Vector | ScaledVector, rows: NDArray[np.uint64]) -> Sparse:
        """`gradient` where `gradients_are_sparse`."""
        if self._work.size == 0:
            self._work = np.zeros(self.dim)
        held, _ = self.add_sparse_gradient(self._work, x, rows)
        values = self._work[held]
        self._work[held] = 0.0
        return Sparse(self.dim, held, values)

    def charge(self, seconds: float, samples: int | None = None) -> None:
        """Count a gradient's seconds and its samples; None: all samples."""
        self.seconds += seconds
        self.samples += self._n if samples is None else samples

    def keep(self, evaluated: Evaluated) -> Evaluated:
        """Keep an evaluation; the gradient's buffer holds ∇f_i at its point."""
        self._kept = evaluated
        return evaluated

    def has(self, x: Vector) -> bool:
        return self._found(Point(x)) is not None

    @property
    def has_unused(self) -> bool:
        """True if what was computed ahead on the algorithm's clock was not asked for."""
        return self._wasted or (self._kept is not None and self._kept.charged)

    def drop(self) -> None:
        """Keep nothing: the gradient's buffer is about to be written to, or is another one."""
        self._kept, self.last.is_few = None, False

    def _found(self, point: Point) -> Evaluated | None:
        """What is kept, if it is at this point."""
        if self._kept is not None and not self._kept.point.equals(point):
            self._wasted |= self._kept.charged
            self._kept = None
        return self._kept

    def _evaluated_by_neighbours(self, point: Point, charged: bool) -> Evaluated | None:
        done = self.neighbours is not None and self.neighbours.evaluate(point, charged)
        return self._kept if done else None

    def _draw(self) -> Generator | None:
        """The random numbers of a model that draws, the same in all gradients of a round; None for any other function."""
        return self.round.model_draw() if self.loss.random and self.round is not None else None

    def _compute(self, point: Point, draw: Generator | None = None) -> float:
        """f_i at a point; ∇f_i goes to the gradient's buffer."""
        self._kept, x, g = None, point.x, self.last.buffer
        _refuse_other_lengths(self.dim, x)
        self.last.is_few = self._holds_few
        if self.last.is_few:
            self.last.few.point = point
            return self.term.evaluate_few(point, self.last.few.values)
        value = self.term.evaluate(x, g, draw)
        if self.penalty is not None:
            value += self.penalty.value(x)
            g += self.penalty.gradient(x)
        return value


def _refuse_other_lengths(dim: int, *vectors: Vector | ScaledVector) -> None:
    """UserError unless all have `dim` coordinates: kernels do not look."""
    for v in vectors:
        if v.size != dim:
            raise UserError(f"a vector of {v.size} coordinates was given to a function of {dim}")


def _point(x: Any, dim: int) -> Any:
    """The point (dim,) that a user's method asks at, as kernels take it; UserError for another one."""
    return x if isinstance(x, ScaledVector) else checked_at("gradient", lambda: arrays.floats(x, (dim,), "coordinates of x"))


def _minibatch(rows: Any, n: int) -> NDArray[np.uint64]:
    """The rows, of n, that a user's method asks for, likewise."""
    return checked_at("gradient", lambda: arrays.whole(rows, (np.size(rows),), "rows", 0, n - 1)).astype(np.uint64)
