"""f_i of all workers that a process hosts: values and gradients as rows. The mean over shards is f exactly, also where their sizes
differ.
"""

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np
from numpy.random import Generator

from mpi_compress.core import arrays
from mpi_compress.core.clock import now
from mpi_compress.core.errors import UserError, checked_at
from mpi_compress.messages.kinds import Indices, Sparse, Vector
from mpi_compress.problem.data_terms import DataTerm, Minibatches, data_term, joined
from mpi_compress.problem.few_coordinates import FewValues, LaidOut
from mpi_compress.problem.penalties import Penalty
from mpi_compress.problem.points import Iterate, Point
from mpi_compress.problem.rows import RowIndices, Rows
from mpi_compress.problem.scaled_vector import AnyVector, ScaledVector, dense

_CACHED = 2**20  # bytes
_SHORT = 4096  # coordinates of a vector that costs less to read again than a call


def pays(m: int, dim: int) -> bool:
    """True if one call for m vectors (dim,) is faster than m calls: they stay cached until they are read, or are short."""
    return 8 * m * dim <= _CACHED or dim <= _SHORT


class Shards:
    """f_i(x) = weight · Σ_{j ∈ D_i} ℓ_j(x) + (µ/2)‖x‖² + r(x) of m workers, weight = n/N, with a smooth penalty r, if there is one.

    ℓ_j(x) is a loss ℓ(y_j, a_j·x) of a margin, or a model's loss of row j. `fs[i]` is the i-th function alone, `fs[a:b]` are some
    of them, with the same memory.

    Returned gradients are valid until the next call, of these functions or of others that share their memory. The last evaluation
    is kept with a copy of its point, and is found again by any equal point: a round that is logged needs f and ∇f at x, and does
    not pay twice. What the algorithm asks for again, where x stands still, is computed again. `samples` and `seconds` (m,) count
    what the algorithm asked for, kept gradients included; `borrowed` (m,) is the part of `seconds` that an evaluation spent.

    Args:
        terms: what the rows of each shard give.
        who: the numbers of the workers, 0, 1, … if they are left out.
        careful: gradients are new arrays, and points are looked at, as a method of a user's needs.
        noise: σ of a normal noise on the gradients that the algorithm asks for, the same in all gradients of a round.
    """

    def __init__(
        self,
        terms: Sequence[DataTerm],
        penalty: Penalty | None = None,
        careful: bool = False,
        who: Sequence[int] | None = None,
        noise: float = 0.0,
    ):
        m = len(terms)
        self.terms, self.penalty, self.careful, self.noise = terms, penalty, careful, noise
        self.who = np.arange(m) if who is None else np.asarray(who)
        self.dim = terms[0].dim if m else 0
        self.are_random = m > 0 and (terms[0].loss.random or noise > 0)  # those of a model that draws, or with noise
        self.sizes = np.array([len(term.rows) for term in terms], dtype=np.int64)
        self.samples = np.zeros_like(self.sizes)
        self.seconds, self.borrowed, self.took, self._values = np.zeros((4, m))
        self.rounds: Any = np.empty(m, dtype=object)  # of each worker, whose draws a random model uses
        self.iterate = Iterate()  # what does not change while workers send
        self._points: Any = np.empty(m, dtype=object)  # where what is kept was evaluated; None: nothing is kept for the algorithm
        few = penalty is None and not noise and not pays(m, self.dim) and sum(term.holds_few for term in terms) > m / 2
        self._few = [FewValues(term) for term in terms] if few else []
        self._laid_out = LaidOut(self.dim)  # in which gradients of few values are laid out
        self._dense = np.zeros((0 if few else m, self.dim))  # those of all others
        self._joined = joined(terms) if m > 1 and not few else None

    def __len__(self) -> int:
        return len(self.terms)

    def __iter__(self) -> Iterator["Objective"]:
        return map(self.__getitem__, range(len(self)))

    def zeros(self) -> Vector:
        """Zeros (m, d)."""
        return np.zeros((len(self), self.dim))

    def sparse_gradients(self, x: AnyVector, rows: Minibatches) -> Sparse:
        """`gradients` where `gradients_are_sparse`."""
        indices, values = list[Indices](), list[Vector]()
        for f, some in zip(self, rows, strict=True):
            gradient = np.zeros(self.dim)
            indices.append(f.add_sparse_gradient(gradient, x, some)[0])
            values.append(gradient[indices[-1]])
        return Sparse(self.dim, np.concatenate(indices), np.concatenate(values), np.cumsum([held.size for held in indices]))

    def items(self) -> Iterable[tuple[int, "Objective"]]:
        """The number and the function of each worker."""
        return zip(self.who.tolist(), self, strict=True)

    def __getitem__(self, which: int | slice) -> Any:
        if not isinstance(which, slice):
            term = self.terms[which]
            return Objective(term.rows, term.loss, term.weight, term.mu, self.penalty, self[which : which + 1])
        m = len(self)
        which = slice(*which.indices(m)[:2])
        if which == slice(0, m):
            return self
        some = copy.copy(self)
        for name in _OF_EACH:
            setattr(some, name, getattr(self, name)[which])
        some._joined = self._joined and self._joined.some(self._joined.cuts[which.start : which.stop + 1])
        return some

    def blocks(self) -> Iterator[tuple[slice, "Shards"]]:
        """All of them in parts whose gradients stay cached until they are read, each with its places."""
        size = max(1, _CACHED // (8 * max(1, self.dim)))
        return ((slice(a, a + size), self[a : a + size]) for a in range(0, len(self), size))

    def at(self, point: Point) -> tuple[Vector, Vector]:
        """f_i (m,) and ∇f_i (m, d) at a point, off the algorithm's count."""
        if not self._keeps(point):
            self.took[:] = self._compute(point, repeat(None))
            self._points.fill(point)
        return self._values, self._gradients

    def gradients(self, x: AnyVector, rows: Minibatches | None = None) -> Vector:
        """∇f_i(x) (m, d), or the means over minibatches in place of those over shards; x is (d,), or (m, d) for a point each."""
        if self.careful and not isinstance(x, ScaledVector):
            x = _checked(x, (len(self), self.dim)[np.ndim(x) != 2 :])
        if rows is None:
            x = dense(x)
            point = Point(x) if self.careful else self.iterate.point(x)
            if x.ndim == 1 and not self.are_random and self._keeps(point):
                self.borrowed += self.took
                self._points.fill(None)
                self.charge(self.took, self.sizes)
            else:
                self.charge(self._compute(point, self._draws()), self.sizes)
            found = self._gradients
            self._add_noise(found)
        else:
            self._points.fill(None)
            found = self.zeros() if self._few else self._dense
            found.fill(0.0)
            self.add_gradients(found, x, rows)
        return found.copy() if self.careful else found

    def add_gradients(self, out: Vector, x: AnyVector, rows: Minibatches | None = None) -> None:
        """out (m, d) += `gradients(x, rows)`; out must not be the array that `gradients` returns."""
        if rows is None:
            out += self.gradients(x)
            return
        _refuse_other_lengths(self.dim, out, x)
        rows = [_minibatch(some, n) for some, n in zip(rows, self.sizes, strict=True)] if self.careful else rows
        start = now()
        if self._joined is not None:
            self._joined.add_gradients(out, x, rows)
        else:
            for term, *arguments in zip(self.terms, out, _each(x), rows, self._draws(), strict=False):
                term.add_gradient(*arguments)
        if self.penalty is not None:
            out += _of_each(self.penalty.gradient, dense(x))
        self._add_noise(out)
        self.charge((now() - start) / len(self), [some.size for some in rows])

    def _add_noise(self, out: Vector) -> None:
        if self.noise:
            for row, draw in zip(out, self._draws(), strict=True):
                row += 0.0 if draw is None else self.noise / math.sqrt(self.dim) * draw.standard_normal(self.dim)

    def charge(self, seconds: Any, samples: Any) -> None:
        """Count a gradient of each: its seconds and its samples."""
        self.seconds += seconds
        self.samples += samples

    @property
    def gradients_are_sparse(self) -> bool:
        """True if the gradient of a minibatch is 0 but on the coordinates that its rows hold."""
        return self.terms[0].is_sparse and self.penalty is None and not self.noise

    @property
    def listed(self) -> Sequence[Indices] | None:
        """The increasing coordinates beyond which each gradient of the last evaluation is 0, where these are few."""
        return [listed for each in self._few if (listed := each.listed) is not None] or None

    @property
    def _gradients(self) -> Vector:
        return self._laid_out.gradients(self._few) if self._few else self._dense

    def _keeps(self, point: Point) -> bool:
        """True if the last evaluation of all of them was at this point."""
        kept = self._points[0]
        return kept is not None and kept.equals(point) and bool((self._points == kept).all())

    def _draws(self) -> Iterable[Generator | None]:
        """The random numbers of models that draw, the same in all gradients of a round; None for any other function."""
        return (t.model_draw() if t else None for t in self.rounds) if self.are_random else repeat(None)

    def _compute(self, point: Point, draws: Iterable[Generator | None]) -> float:
        """Values and gradients at a point, or at points (m, d); nothing is kept. Returns the seconds that each took."""
        _refuse_other_lengths(self.dim, point.x)
        self._points.fill(None)
        start, x, gradients = now(), point.x, self._dense
        if self._few:
            points = repeat(point) if x.ndim == 1 else map(Point, x)
            self._values[:] = [each.evaluate(p) for each, p in zip(self._few, points, strict=False)]
        elif self._joined is not None:
            self._joined.evaluate_each(np.atleast_2d(x), self._values, gradients)
        else:
            each = zip(self.terms, _each(x), gradients, draws, strict=False)
            self._values[:] = [term.evaluate(*arguments) for term, *arguments in each]
        if self.penalty is not None:
            self._values += _of_each(self.penalty.value, x)
            gradients += _of_each(self.penalty.gradient, x)
        return (now() - start) / len(self)


_COUNTS = ("samples", "seconds", "borrowed", "took")
_OF_EACH = ("terms", "who", "sizes", "rounds", *_COUNTS, "_points", "_values", "_few", "_dense")


class Objective:
    """f_i of one worker.

    Args:
        shard: the `Shards` of this function alone, where it is among others.
    """

    def __init__(
        self, rows: Rows, loss: Any, weight: float, mu: float, penalty: Penalty | None = None, shard: Shards | None = None
    ):
        self.rows, self.loss, self.weight, self.mu, self.penalty = rows, loss, float(weight), float(mu), penalty
        self.shard = Shards([data_term(rows, loss, self.weight, self.mu)], penalty) if shard is None else shard
        self.term: Any = self.shard.terms[0]
        self.dim, self.careful = self.shard.dim, self.shard.careful

    def value_and_gradient(self, x: Vector) -> tuple[float, Vector]:
        """f_i(x) and ∇f_i(x) (d,), off the algorithm's count."""
        values, (gradient,) = self.shard.at(Point.at(_checked(x, (self.dim,)) if self.careful else x))
        return float(values[0]), gradient.copy() if self.careful else gradient

    def elsewhere(self, x: Vector) -> tuple[float, Vector]:
        """f_i and ∇f_i (d,), a new array, at another point, off every count and clock; what is kept stays."""
        gradient = np.empty(self.dim)
        value = self.term.evaluate(x, gradient, None)
        if self.penalty is not None:
            value, gradient = value + self.penalty.value(x), gradient + self.penalty.gradient(x)
        return value, gradient

    def gradient(self, x: AnyVector, rows: RowIndices | None = None) -> Vector:
        """∇f_i(x) (d,), or the mean over a minibatch of `rows` in place of the mean over the shard."""
        return self.shard.gradients(x, None if rows is None else [rows])[0]

    def add_sparse_gradient(self, out: Vector, x: AnyVector, rows: RowIndices) -> tuple[Indices, float]:
        """out += a minibatch's gradient where `Shards.gradients_are_sparse`: the increasing coordinates that these hold, and what
        ‖out‖² grew by."""
        _refuse_other_lengths(self.dim, out, x)
        rows = _minibatch(rows, len(self.rows)) if self.careful else rows
        start = now()
        held, growth = self.term.add_sparse_gradient(out, x, rows)
        self.shard.charge(now() - start, rows.size)
        return held, growth


def _each(x: AnyVector) -> Iterable[Any]:
    """The point of each worker."""
    return repeat(x) if isinstance(x, ScaledVector) or x.ndim == 1 else x


def _of_each(function: Callable[[Vector], Any], x: Vector) -> Vector:
    """A function of x (d,), or of each of (m, d)."""
    return np.apply_along_axis(function, -1, x)


def _refuse_other_lengths(dim: int, *vectors: AnyVector) -> None:
    """UserError unless all have `dim` coordinates: kernels do not look."""
    for v in vectors:
        if v.shape[-1] != dim:
            raise UserError(f"a vector of {v.shape[-1]} coordinates was given to a function of {dim}")


def _checked(x: Any, shape: tuple[int, ...]) -> Vector:
    """The points that a user's method asks at, as kernels take them; UserError for others."""
    return checked_at("gradient", arrays.floats, x, shape, "coordinates of x")


def _minibatch(rows: Any, n: int) -> RowIndices:
    """The rows, of n, that a user's method asks for, likewise."""
    if not np.size(rows):
        raise ZeroDivisionError("gradient: the mean over no rows")
    return checked_at("gradient", arrays.whole, rows, (np.size(rows),), "rows", 0, n - 1).astype(np.uint64)
