"""The part of f_i that the rows of a shard give: fused passes of a loss with a kernel, a loss in NumPy, or a model."""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from mpi_compress.kernels import rows as kernels
from mpi_compress.kernels import shards
from mpi_compress.kernels.vectors import squared_norm, taken
from mpi_compress.messages.kinds import Indices, Vector
from mpi_compress.problem.mean_loss import MeanLoss
from mpi_compress.problem.points import Point, are_few
from mpi_compress.problem.rows import Rows
from mpi_compress.problem.scaled_vector import ScaledVector


class DataTerm(ABC):
    """weight · Σ_j ℓ_j(x) + (µ/2)‖x‖² over the rows j of a shard; a minibatch's mean stands for the shard's."""

    def __init__(self, rows: Rows, loss: Any, weight: float, mu: float):
        self.rows, self.loss, self.weight, self.mu = rows, loss, weight, mu
        self.whole = weight * len(rows)  # the weight of a minibatch's mean

    @property
    def dim(self) -> int:
        return self.rows.dim

    @property
    def is_sparse(self) -> bool:
        """True if the gradient of a minibatch is 0 but on the coordinates that its rows hold."""
        return len(self.rows.matrix) == 3 and self.mu == 0.0

    @property
    def holds_few(self) -> bool:
        """True if the rows hold few of d coordinates, so that µx apart the gradient is 0 on nearly all."""
        return False

    @property
    def held(self) -> Indices:
        """The increasing coordinates that the rows hold, where `holds_few`."""
        raise NotImplementedError

    @abstractmethod
    def evaluate(self, x: Vector, gradient: Vector, draw: Generator | None) -> float:
        """The value at x (d,), without `draw` that of the function itself; its gradient goes to `gradient` (d,)."""

    def evaluate_few(self, point: Point, values: Vector) -> float:
        """The value at a point, where `holds_few`; the gradient without µx goes to `values`, on the coordinates `held`."""
        raise NotImplementedError

    @abstractmethod
    def add_gradient(self, out: Vector, x: Vector | ScaledVector, rows: NDArray[np.uint64], draw: Generator | None) -> None:
        """out (d,) += the gradient of a minibatch of `rows`."""

    def add_sparse_gradient(self, out: Vector, x: Vector | ScaledVector, rows: NDArray[np.uint64]) -> tuple[Indices, float]:
        """`add_gradient` where `is_sparse`: the increasing coordinates that the rows hold, and what ‖out‖² grew by."""
        raise NotImplementedError


class FusedMargins(DataTerm):
    """A loss with a kernel: one pass over the rows."""

    @property
    def holds_few(self) -> bool:
        return len(self.rows.matrix) == 3 and are_few(self.rows.nonzeros, self.dim)

    @property
    def held(self) -> Indices:
        return self._own_columns[0]

    @cached_property
    def _own_columns(self) -> tuple[Indices, "FusedMargins"]:
        """The columns of which the rows hold an entry, and the term of the data on these alone."""
        held, own = self.rows.on_own_columns()
        return held, FusedMargins(own, self.loss, self.weight, 0.0)

    @cached_property
    def _shard(self) -> tuple[tuple[NDArray, ...], Vector, NDArray[np.uint64]]:
        return self.rows.compact(), self.rows.labels, np.array([0, len(self.rows)], dtype=np.uint64)

    def evaluate(self, x: Vector, gradient: Vector, draw: Generator | None) -> float:
        value = np.zeros(1)
        out = value, gradient.reshape(1, -1)
        shards.losses_and_gradients(*self._shard, self.loss.kernel, self.weight, self.mu, x, *out)
        return float(value[0])

    def evaluate_few(self, point: Point, values: Vector) -> float:
        held, own = self._own_columns
        value = own.evaluate(taken(point.x, held), values, None)
        return value + 0.5 * self.mu * point.squared_norm if self.mu else value

    def add_gradient(self, out: Vector, x: Vector | ScaledVector, rows: NDArray[np.uint64], draw: Generator | None) -> None:
        weight = self.whole / rows.size
        shard = self.rows.matrix, self.rows.labels
        kernels.add_gradient(*shard, rows, self.loss.kernel, weight, self.mu, *_parts(x), out)

    def add_sparse_gradient(self, out: Vector, x: Vector | ScaledVector, rows: NDArray[np.uint64]) -> tuple[Indices, float]:
        weight = self.whole / rows.size
        shard = *self.rows.matrix, self.rows.labels
        held, growth = kernels.add_touching(*shard, rows, self.loss.kernel, weight, *_parts(x), out)
        return (held if rows.size == 1 else np.unique(held)), growth


class Margins(DataTerm):
    """A loss without a kernel: A x, its slopes on arrays, Aᵀ slopes."""

    def evaluate(self, x: Vector, gradient: Vector, draw: Generator | None) -> float:
        values, slopes = self._values_and_slopes(self.rows, x)
        kernels.weighted_sum(self.rows.matrix, self.weight * slopes, gradient)
        return self.weight * float(np.sum(values)) + _add_ridge(self.mu, x, gradient)

    def add_gradient(self, out: Vector, x: Vector | ScaledVector, rows: NDArray[np.uint64], draw: Generator | None) -> None:
        some, weights = self._minibatch(x, rows)
        total = np.empty(self.dim)
        kernels.weighted_sum(some.matrix, weights, total)
        out += total
        if self.mu:
            z, scale = _parts(x)
            out += self.mu * scale * z

    def add_sparse_gradient(self, out: Vector, x: Vector | ScaledVector, rows: NDArray[np.uint64]) -> tuple[Indices, float]:
        some, weights = self._minibatch(x, rows)
        indptr, indices, values = some.matrix
        held, places = np.unique(indices, return_inverse=True)
        added = np.bincount(places, np.repeat(weights, (indptr[1:] - indptr[:-1]).astype(np.int64)) * values, held.size)
        before = out[held]
        out[held] += added
        return held, float(np.sum((out[held] - before) * (out[held] + before)))

    def _minibatch(self, x: Vector | ScaledVector, rows: NDArray[np.uint64]) -> tuple[Rows, Vector]:
        """The rows of a minibatch, and what each is weighed with."""
        some = self.rows.take(rows)
        return some, self.whole / rows.size * self._values_and_slopes(some, x)[1]

    def _values_and_slopes(self, rows: Rows, x: Vector | ScaledVector) -> tuple[Vector, Vector]:
        z, scale = _parts(x)
        m = rows.margins(z)
        return self.loss.value_and_slope(rows.labels, m if scale == 1.0 else scale * m)


class ModelRows(DataTerm):
    """A model: the mean loss of rows at a flat x."""

    is_sparse = False

    @property
    def dim(self) -> int:
        return self.loss.dim

    def evaluate(self, x: Vector, gradient: Vector, draw: Generator | None) -> float:
        value, of_rows = self.loss.loss_and_gradient(x, self.rows, draw)
        share = self.weight * len(self.rows)
        np.multiply(share, of_rows, out=gradient)
        return share * value + _add_ridge(self.mu, x, gradient)

    def add_gradient(self, out: Vector, x: Vector | ScaledVector, rows: NDArray[np.uint64], draw: Generator | None) -> None:
        dense = x.dense() if isinstance(x, ScaledVector) else x
        out += self.whole * self.loss.loss_and_gradient(dense, self.rows.take(rows), draw)[1]
        if self.mu:
            out += self.mu * dense


def data_term(rows: Rows, loss: MeanLoss, weight: float, mu: float) -> DataTerm:
    """The term of a loss or a model on these rows, for f = the sum over workers' terms / n."""
    if not loss.of_margin:
        return ModelRows(rows, loss, weight, mu)
    return Margins(rows, loss, weight, mu) if loss.kernel is None else FusedMargins(rows, loss, weight, mu)


def _add_ridge(mu: float, x: Vector, gradient: Vector) -> float:
    """Adds the gradient of (µ/2)‖x‖², and returns its value."""
    if mu == 0.0:
        return 0.0
    gradient += mu * x
    return 0.5 * mu * squared_norm(x)


def _parts(x: Vector | ScaledVector) -> tuple[Vector, float]:
    """z (d,) and a scale with x = scale · z."""
    return (x.v, x.scale) if isinstance(x, ScaledVector) else (x, 1.0)
