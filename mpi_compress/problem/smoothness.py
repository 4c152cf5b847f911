"""The Lipschitz constants of ∇f and of the workers' ∇f_i: stated by the loss, given by the job, or estimated."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mpi_compress.kernels.rows import squared_norms
from mpi_compress.kernels.vectors import norm
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.constants import gram_eigenvalues
from mpi_compress.problem.datasets.store import DataSet
from mpi_compress.problem.losses import Loss
from mpi_compress.problem.models import Model, dim_of
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.rows import Rows

_POINTS = 5  # along gradient descent, at which an estimate looks
_TURNS = 20  # of its direction at each of them
_SHORT = 1e-4  # the length of a difference, over 1 + ‖x‖


@dataclass(frozen=True)
class Smoothness:
    """Of the mean loss, the regulariser left out; NaN where it is not known."""

    L: float
    each: list[float] | None = None  # L_i of every worker, where they are asked for
    row: float | None = None  # the largest that one sample gives its worker's minibatch of one, likewise
    variation: float = math.nan  # L_± of the f_i, where it is known and `each` is; it is at most L_rms
    source: str = "stated"  # by the loss; or "given" by the job, or "estimate", which is a lower bound

    def plus(self, mu: float) -> "Smoothness":
        """With a regulariser of smoothness mu added to f and to every f_i."""
        each = None if self.each is None else [L + mu for L in self.each]
        return Smoothness(self.L + mu, each, None if self.row is None else self.row + mu, self.variation, self.source)


def stated(data: DataSet, loss: Loss | Model, n: int, each: bool, row: bool) -> Smoothness:
    """What the loss or the model states, for n workers."""
    if isinstance(loss, Model):
        return _of_model(data, loss, n, each, row)
    scale = loss.curvature / data.n_samples
    if not loss.smooth:
        return Smoothness(math.nan)
    return Smoothness(
        scale * gram_eigenvalues(data)[0],
        [scale * n * eigenvalue for eigenvalue in gram_eigenvalues(data, n)] if each else None,
        max(loss.curvature * _peak_weight(rows, n / data.n_samples) for rows in data.shards(range(n), n)) if row else None,
    )


def estimated(data: DataSet, loss: Loss | Model, n: int, each: bool) -> Smoothness:
    """The largest ‖∇f(x) − ∇f(y)‖ / ‖x − y‖ that trial rounds see, of f and of every f_i: lower bounds, hence estimates."""
    weight = n / data.n_samples
    whole = Objective(data.read(0, data.n_samples), loss, 1 / data.n_samples, 0.0)
    start = loss.start(np.random.default_rng(0)) if isinstance(loss, Model) else np.zeros(dim_of(loss, data.dim))
    shards = (Objective(rows, loss, weight, 0.0) for rows in (data.shards(range(n), n) if each else ()))
    return Smoothness(
        steepest_change(whole, start), [steepest_change(f, start) for f in shards] if each else None, source="estimate"
    )


def steepest_change(f: Objective, x: Vector) -> float:
    """The largest ‖∇f(x) − ∇f(y)‖ / ‖x − y‖ at points of gradient descent from x (d,), y near x.

    At each point the direction y − x becomes the last difference of gradients, which turns it to where ∇f changes most.
    """
    x, largest = x.copy(), 0.0
    u = np.random.default_rng(0).standard_normal(x.size)
    for _ in range(_POINTS):
        g = f.value_and_gradient(x)[1].copy()
        for _ in range(_TURNS):
            length = norm(u)
            if not 0 < length < math.inf:
                break
            step = _SHORT * (1 + norm(x)) / length * u
            u = f.value_and_gradient(x + step)[1] - g
            largest = max(largest, norm(u) / norm(step))
        if not 0 < largest < math.inf:
            break
        x -= g / largest
    return largest or math.nan


def _of_model(data: DataSet, model: Model, n: int, each: bool, row: bool) -> Smoothness:
    def eigenvalues(shards: int) -> Sequence[float]:
        return gram_eigenvalues(data, shards) if math.isfinite(model.curvature) else [math.nan] * shards

    L = model.smoothness(data.read(0, data.n_samples), eigenvalues(1)[0])
    if math.isnan(L):
        return Smoothness(L)
    weight = n / data.n_samples
    shards = list(data.shards(range(n), n)) if each else []
    of_all = zip(shards, eigenvalues(n) if each else [], strict=True)
    parts = [weight * len(rows) * model.smoothness(rows, largest) for rows, largest in of_all]
    variation = model.variation(shards) if each else math.nan
    return Smoothness(L, parts if each else None, _of_one_row(data, model, n) if row else None, variation)


def _of_one_row(data: DataSet, model: Model, n: int) -> float:
    """The largest smoothness of one row's loss, times the weight of a sample that stands for its shard."""
    weight, largest = n / data.n_samples, 0.0
    for rows in data.shards(range(n), n):
        squares = np.empty(len(rows))
        squared_norms(rows.matrix, squares)
        one = max(model.smoothness(rows.cut(j, j + 1), float(square)) for j, square in enumerate(squares))
        largest = max(largest, weight * len(rows) * one)
    return largest


def _peak_weight(shard: Rows, weight: float) -> float:
    """max_j ‖a_j‖² of a shard, times the weight of a sample that stands for all of it."""
    squares = np.empty(len(shard))
    squared_norms(shard.matrix, squares)
    return float(squares.max()) * weight * len(shard)
