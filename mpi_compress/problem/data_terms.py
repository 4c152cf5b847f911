"""The part of f_i that the rows of a shard give: fused passes of a loss with a kernel, a loss in NumPy, or a model."""

import copy
import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator

from mpi_compress.kernels import rows as kernels
from mpi_compress.kernels import shards
from mpi_compress.kernels.vectors import squared_norm
from mpi_compress.messages.kinds import Indices, Vector
from mpi_compress.problem.mean_loss import MeanLoss
from mpi_compress.problem.points import are_few
from mpi_compress.problem.rows import RowIndices, Rows
from mpi_compress.problem.scaled_vector import AnyVector, dense, parts

Minibatches = Sequence[RowIndices] | RowIndices  # rows of each shard; (m, B) where all have as many


class DataTerm(ABC):
    """weight · Σ_j ℓ_j(x) + (µ/2)‖x‖² over the rows j of a shard; a minibatch's mean stands for the shard's."""

    def __init__(self, rows: Rows, loss: Any, weight: float, mu: float):
        self.rows, self.loss, self.weight, self.mu = rows, loss, weight, mu
        self.whole = weight * len(rows)  # the weight of a minibatch's mean
        self.dim = loss.dim if not loss.of_margin else rows.dim
        self.is_sparse = loss.of_margin and len(rows.matrix) == 3 and mu == 0.0  # True: beyond its rows a minibatch's gradient is 0
        self.holds_few = False  # True: the rows hold few of d coordinates, so that µx apart the gradient is 0 on nearly all

    @abstractmethod
    def evaluate(self, x: Vector, gradient: Vector, draw: Generator | None) -> float:
        """The value at x (d,), without `draw` that of the function itself; its gradient goes to `gradient` (d,)."""

    @abstractmethod
    def add_gradient(self, out: Vector, x: AnyVector, rows: RowIndices, draw: Generator | None) -> None:
        """out (d,) += the gradient of a minibatch of `rows`. Of margins there is `add_sparse_gradient`, where `is_sparse`, which
        returns the increasing coordinates that the rows hold, and what ‖out‖² grew by."""


class FusedMargins(DataTerm):
    """A loss with a kernel: one pass over the rows. Those of m shards that lie one after another are one term, and are asked by one
    call, to the last bit as one by one; the i-th begins in row `cuts[i]` (m + 1,)."""

    def __init__(self, rows: Rows, loss: Any, weight: float, mu: float):
        super().__init__(rows, loss, weight, mu)
        self.holds_few = len(rows.matrix) == 3 and are_few(rows.nonzeros, self.dim)
        self.cuts = np.array([0, len(rows)], dtype=np.uint64)

    def some(self, cuts: RowIndices) -> "FusedMargins":
        """The same for shards with these cuts."""
        found = copy.copy(self)
        found.cuts = cuts
        return found

    def evaluate_each(self, xs: Vector, values: Vector, gradients: Vector) -> None:
        """values (m,) and gradients (m, d) at points (m, d), or at one for all (1, d)."""
        shard = self.rows.compact, self.rows.labels, self.cuts
        shards.losses_and_gradients(*shard, self.loss.kernel, self.weight, self.mu, xs, values, gradients)

    def add_gradients(self, out: Vector, x: AnyVector, rows: Minibatches) -> None:
        """out (m, d) += the gradients of minibatches, each of rows of one shard, at x (d,), or (m, d) for a point each."""
        (z, scale), sizes = parts(x), np.array([each.size for each in rows])
        weights = self.weight * np.diff(self.cuts).astype(np.float64) / sizes
        shard = self.rows.matrix, self.rows.labels, self.cuts, np.concatenate(rows), np.cumsum(sizes)
        kernels.add_gradients(*shard, self.loss.kernel, weights, self.mu, np.atleast_2d(z), scale, out)

    def evaluate(self, x: Vector, gradient: Vector, draw: Generator | None) -> float:
        value = np.zeros(1)
        self.evaluate_each(x[None], value, gradient[None])
        return float(value[0])

    def add_gradient(self, out: Vector, x: AnyVector, rows: RowIndices, draw: Generator | None) -> None:
        self.add_gradients(out[None], x, [rows])

    def add_sparse_gradient(self, out: Vector, x: AnyVector, rows: RowIndices) -> tuple[Indices, float]:
        shard = *self.rows.matrix, self.rows.labels
        held, growth = kernels.add_touching(*shard, rows, self.loss.kernel, self.whole / rows.size, *parts(x), out)
        return (held if rows.size == 1 else np.unique(held)), growth


class Margins(DataTerm):
    """A loss without a kernel: A x, its slopes on arrays, Aᵀ slopes."""

    def evaluate(self, x: Vector, gradient: Vector, draw: Generator | None) -> float:
        values, slopes = self._values_and_slopes(self.rows, x)
        kernels.weighted_sum(self.rows.matrix, self.weight * slopes, gradient)
        return self.weight * float(np.sum(values)) + _add_ridge(self.mu, x, gradient)

    def add_gradient(self, out: Vector, x: AnyVector, rows: RowIndices, draw: Generator | None) -> None:
        some, weights = self._minibatch(x, rows)
        total = np.empty(self.dim)
        kernels.weighted_sum(some.matrix, weights, total)
        out += total
        if self.mu:
            z, scale = parts(x)
            out += self.mu * scale * z

    def add_sparse_gradient(self, out: Vector, x: AnyVector, rows: RowIndices) -> tuple[Indices, float]:
        some, weights = self._minibatch(x, rows)
        indptr, indices, values = some.matrix
        held, places = np.unique(indices, return_inverse=True)
        added = np.bincount(places, np.repeat(weights, (indptr[1:] - indptr[:-1]).astype(np.int64)) * values, held.size)
        before = out[held]
        out[held] += added
        return held, float(np.sum((out[held] - before) * (out[held] + before)))

    def _minibatch(self, x: AnyVector, rows: RowIndices) -> tuple[Rows, Vector]:
        """The rows of a minibatch, and what each is weighed with."""
        some = self.rows.take(rows)
        return some, self.whole / rows.size * self._values_and_slopes(some, x)[1]

    def _values_and_slopes(self, rows: Rows, x: AnyVector) -> tuple[Vector, Vector]:
        z, scale = parts(x)
        return self.loss.value_and_slope(rows.labels, scale * rows.margins(z))


class ModelRows(DataTerm):
    """A model: the mean loss of rows at a flat x."""

    def evaluate(self, x: Vector, gradient: Vector, draw: Generator | None) -> float:
        value, of_rows = self.loss.loss_and_gradient(x, self.rows, draw)
        np.multiply(self.whole, of_rows, out=gradient)
        return self.whole * value + _add_ridge(self.mu, x, gradient)

    def add_gradient(self, out: Vector, x: AnyVector, rows: RowIndices, draw: Generator | None) -> None:
        at = dense(x)
        out += self.whole * self.loss.loss_and_gradient(at, self.rows.take(rows), draw)[1]
        if self.mu:
            out += self.mu * at


def data_term(rows: Rows, loss: MeanLoss, weight: float, mu: float) -> DataTerm:
    """The term of a loss or a model on these rows, for f = the sum over workers' terms / n."""
    kind = ModelRows if not loss.of_margin else Margins if loss.kernel is None else FusedMargins
    return kind(rows, loss, weight, mu)


def joined(terms: Sequence[DataTerm]) -> FusedMargins | None:
    """The terms of shards that lie one after another as one; None where they do not."""
    first, shards = terms[0], [term.rows for term in terms]
    whole, follow = shards[0].whole, (b.whole is a.whole and b.start == a.start + len(a) for a, b in itertools.pairwise(shards))
    if whole is None or not isinstance(first, FusedMargins) or not all(follow) or {term.weight for term in terms} != {first.weight}:
        return None
    cuts = np.cumsum([shards[0].start, *map(len, shards)], dtype=np.uint64)
    return FusedMargins(whole, first.loss, first.weight, first.mu).some(cuts)


def _add_ridge(mu: float, x: Vector, gradient: Vector) -> float:
    """Adds the gradient of (µ/2)‖x‖², and returns its value."""
    if mu == 0.0:
        return 0.0
    gradient += mu * x
    return 0.5 * mu * squared_norm(x)
