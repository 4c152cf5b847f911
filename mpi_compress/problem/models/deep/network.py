"""The contract of a network, a pure function of its blocks, and what makes it a model with a flat x."""

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.fields import AtLeastOne
from mpi_compress.core.registry import fact
from mpi_compress.core.sums import added
from mpi_compress.problem.mean_loss import Outline
from mpi_compress.problem.models.base import Generator, Model, Rows, Vector
from mpi_compress.problem.models.deep.framework import jax, jnp, provenance

Array = Any  # of JAX
Arrays = Mapping[str, Array]  # the blocks of x


class Dropout:
    """Dropout of one call: each use has its own random numbers; nothing is dropped where f itself is evaluated."""

    def __init__(self, words: Array, training: Array):
        self._key, self._training, self._uses = jax.random.wrap_key_data(words), training, 0

    def __call__(self, h: Array, rate: float) -> Array:
        """h with its entries 0 with probability `rate`, and the others divided by 1 − rate."""
        if rate == 0:
            return h
        self._uses += 1
        kept = (1 - rate * self._training).astype(h.dtype)
        uniform = jax.random.uniform(jax.random.fold_in(self._key, self._uses), h.shape, jnp.float32)
        return jnp.where(uniform < kept, h / kept, 0)


@dataclass(frozen=True)
class Network(Model):
    """A model as a pure function in JAX. Its fields are its parameters.

    x is float64; it is rounded to float32, in which the network computes. Rows are evaluated `chunk` at a time, and
    the last chunk is padded, so one compiled function serves any number of rows. Sums over chunks are float64.
    """

    chunk: AtLeastOne = 64  # samples that are evaluated at once; best the size of a minibatch

    @abstractmethod
    def outputs(self, p: Arrays, a: Array, real: Array, drop: Dropout) -> Array:
        """What the network gives for rows (chunk, …).

        Args:
            p: the blocks of x.
            a: what `inputs` gives of the rows.
            real: (chunk,) 1 for a row, 0 for padding; only what joins rows, such as batch statistics, must look at it.
        """

    @abstractmethod
    def losses(self, outputs: Array, a: Array, y: Array) -> Array:
        """The loss (chunk,) of every row with its label y (chunk,)."""

    def inputs(self, rows: Rows) -> NDArray:
        """The rows as the network wants them (N, …); floats are rounded to float32."""
        return rows.dense()

    def start(self, rng: Generator) -> Vector:
        """x0 (d,), float32 numbers: as `start_of_block` says."""
        each = [self.start_of_block(*block, rng).ravel() for block in self.blocks.items()]
        return np.concatenate(each).astype(np.float32).astype(np.float64)

    def start_of_block(self, name: str, shape: tuple[int, ...], rng: Generator) -> Vector:
        """x0 of a block: 0 for a vector, else N(0, 2/m), m the product of all axes but the last (He et al. 2015)."""
        if len(shape) < 2:
            return np.zeros(shape)
        return rng.standard_normal(shape) * math.sqrt(2 / max(1, math.prod(shape[:-1])))

    def loss_and_gradient(self, x: Vector, rows: Rows, draw: Generator | None) -> tuple[float, Vector]:
        function = compiled(self, self.outline).loss_and_gradient
        loss, gradient, p = 0.0, np.zeros(self.dim), _single(x)
        for a, y, real in self._chunks(rows):
            value, slopes = function(p, a, y, real, _words(draw), np.float32(draw is not None))
            loss += float(value)
            gradient += np.asarray(slopes)
        return loss / len(rows), gradient / len(rows)

    def mean_loss(self, x: Vector, rows: Rows) -> float:
        function, p = compiled(self, self.outline).total, _single(x)
        losses = (float(function(p, *chunk, _words(None), np.float32(0))) for chunk in self._chunks(rows))
        return added(losses) / len(rows)

    def scores(self, x: Vector, rows: Rows) -> Vector | None:
        """The outputs (N, …) for all rows, without dropout."""
        function, p = compiled(self, self.outline).outputs, _single(x)
        parts = [np.asarray(function(p, a, real))[: int(real.sum())] for a, _, real in self._chunks(rows)]
        return np.concatenate(parts).astype(np.float64)

    @fact
    def provenance(self) -> dict[str, str]:
        return provenance()

    def _chunks(self, rows: Rows) -> Iterator[tuple[NDArray, ...]]:
        """Inputs, labels and which rows are real, `chunk` at a time; the last ones padded with zeros."""
        for start in range(0, len(rows), self.chunk):
            some = rows.cut(start, min(start + self.chunk, len(rows)))
            a, y = self.inputs(some), some.labels.astype(np.int32 if self.labels == "class" else np.float32)
            a = a.astype(np.float32) if a.dtype.kind == "f" else a.astype(np.int32)
            real, lacking = np.ones(len(some), dtype=np.float32), self.chunk - len(some)
            yield tuple(np.pad(of, [(0, lacking)] + [(0, 0)] * (of.ndim - 1)) for of in (a, y, real))


class Compiled(NamedTuple):
    """A network's functions of a flat x, compiled at their first use."""

    loss_and_gradient: Any  # (p, a, y, real, words, training) → the sum of losses, and its gradient (d,)
    outputs: Any  # (p, a, real) → (chunk, …)
    total: Any  # (p, a, y, real, words, training) → the sum of losses


@lru_cache(maxsize=64)
def compiled(network: Network, outline: Outline) -> Compiled:
    """The functions of a network for data of this outline; they compute in the float type of p."""
    def total(blocks: Arrays, a: Array, y: Array, real: Array, words: Array, training: Array) -> Array:
        out = network.outputs(blocks, a, real, Dropout(words, training))
        return jnp.sum(jnp.where(real > 0, network.losses(out, a, y), 0))

    def loss_and_gradient(p: Array, *others: Array) -> tuple[Array, Array]:
        value, slopes = jax.value_and_grad(total)(network.split(p), *others)
        return value, jnp.concatenate([slopes[name].ravel() for name in network.blocks])

    def outputs(p: Array, a: Array, real: Array) -> Array:
        return network.outputs(network.split(p), a, real, Dropout(np.zeros(2, dtype=np.uint32), np.float32(0)))

    return Compiled(jax.jit(loss_and_gradient), jax.jit(outputs), jax.jit(lambda p, *others: total(network.split(p), *others)))


def _single(x: Vector) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        return x.astype(np.float32)


def _words(draw: Generator | None) -> NDArray[np.uint32]:
    return np.zeros(2, dtype=np.uint32) if draw is None else draw.integers(0, 2**32, 2, dtype=np.uint32)
