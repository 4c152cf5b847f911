"""The part of f_i that the rows of a shard give: fused passes of a loss with a kernel, a loss in NumPy, or a model."""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from mpi_compress.kernels import rows as kernels
from mpi_compress.kernels import shards
from mpi_compress.kernels.vectors import squared_norm
from mpi_compress.messages.kinds import Indices, Vector
from mpi_compress.problem.mean_loss import MeanLoss
from mpi_compress.problem.points import are_few
from mpi_compress.problem.rows import Rows
from mpi_compress.problem.scaled_vector import ScaledVector

Minibatches = Sequence[NDArray[np.uint64]] | NDArray[np.uint64]  # rows of each shard; (m, B) where all have as many


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

    @abstractmethod
    def evaluate(self, x: Vector, gradient: Vector, draw: Generator | None) -> float:
        """The value at x (d,), without `draw` that of the function itself; its gradient goes to `gradient` (d,)."""

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

    @cached_property
    def _alone(self) -> "Neighbours":
        return Neighbours(self, self.rows, self.rows.compact(), np.array([0, len(self.rows)], dtype=np.uint64))

    def evaluate(self, x: Vector, gradient: Vector, draw: Generator | None) -> float:
        value = np.zeros(1)
        self._alone.evaluate(x[None], value, gradient[None])
        return float(value[0])

    def add_gradient(self, out: Vector, x: Vector | ScaledVector, rows: NDArray[np.uint64], draw: Generator | None) -> None:
        self._alone.add_gradients(out[None], x, [rows])

    def add_sparse_gradient(self, out: Vector, x: Vector | ScaledVector, rows: NDArray[np.uint64]) -> tuple[Indices, float]:
        weight = self.whole / rows.size
        shard = *self.rows.matrix, self.rows.labels
        held, growth = kernels.add_touching(*shard, rows, self.loss.kernel, weight, *_parts(x), out)
        return (held if rows.size == 1 else np.unique(held)), growth


@dataclass(frozen=True)
class Neighbours:
    """Fused margins of m shards that lie one after another: all of them by one call, to the last bit as one by one.

    Args:
        first: the term of one of them.
        rows: those of all, with what `compact` makes of their matrix.
        cuts: where each begins among them, and where the last one ends.
    """

    first: FusedMargins
    rows: Rows
    matrix: tuple[NDArray, ...]
    cuts: NDArray[np.uint64]  # (m + 1,)

    @classmethod
    def of(cls, terms: Sequence[DataTerm]) -> "Neighbours | None":
        """None where the shards do not lie one after another."""
        shards = [term.rows for term in terms]
        whole, follow = shards[0].whole, (b.whole is a.whole and b.start == a.start + len(a) for a, b in itertools.pairwise(shards))
        first, *others = terms
        if whole is None or not isinstance(first, FusedMargins) or not all(follow) or any(f.weight != first.weight for f in others):
            return None
        return cls(first, whole, whole.compact(), np.cumsum([shards[0].start, *map(len, shards)], dtype=np.uint64))

    def some(self, which: slice) -> "Neighbours":
        return replace(self, cuts=self.cuts[which.start : which.stop + 1])

    def evaluate(self, xs: Vector, values: Vector, gradients: Vector) -> None:
        """values (m,) and gradients (m, d) at points (m, d), or at one for all (1, d)."""
        f, labels = self.first, self.rows.labels
        shards.losses_and_gradients(self.matrix, labels, self.cuts, f.loss.kernel, f.weight, f.mu, xs, values, gradients)

    def add_gradients(self, out: Vector, x: Vector | ScaledVector, rows: Minibatches) -> None:
        """out (m, d) += the gradients of minibatches, each of rows of one shard, at x (d,), or (m, d) for a point each."""
        f, (z, scale), sizes = self.first, _parts(x), np.array([each.size for each in rows])
        weights = f.weight * np.diff(self.cuts).astype(np.float64) / sizes
        kernels.add_gradients(
            self.rows.matrix, self.rows.labels, self.cuts, np.concatenate(rows), np.cumsum(sizes), f.loss.kernel, weights, f.mu,
            np.atleast_2d(z), scale, out,
        )  # fmt: skip


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
