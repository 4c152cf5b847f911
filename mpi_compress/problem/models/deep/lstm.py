import math

import numpy as np

from mpi_compress.core.fields import Decay
from mpi_compress.problem.models.base import Generator, Rows, Shapes, Vector, models
from mpi_compress.problem.models.deep.framework import lax
from mpi_compress.problem.models.deep.network import Array, Arrays, AtLeastOne, Dropout, NDArray, Network, fact, jax, jnp


@models.register("lstm")
class LSTM(Network):
    """A word-level language model (Zaremba, Sutskever, Vinyals 2014), in JAX, for data of format "text".

    The loss of a row is −log of the probability of the next word, in the mean over its words, so that e to the mean loss is the
    perplexity. A word's vector serves as input and as output (Press, Wolf 2017). The states before a row are zero. As in the
    hard-threshold paper, d = 28,949,319 with hidden = 650, layers = 3 and the 28,869 words of its WikiText-2.
    """

    labels = "number"
    hidden: AtLeastOne = 128  # units of a layer, and length of a word's vector
    layers: AtLeastOne = 3  # LSTM layers, one above the other
    dropout: Decay = 0.4  # of word vectors, between layers, and of the last layer's output

    @fact
    def random(self) -> bool:
        return self.dropout > 0

    def check(self) -> None:
        if "vocabulary" not in self.outline.sizes:
            raise ValueError(f'{self.name} needs text: data = {{ path = …, format = "text", vocabulary = … }}')

    @property
    def blocks(self) -> Shapes:
        words, h = self.outline.sizes["vocabulary"], self.hidden
        found: dict[str, tuple[int, ...]] = {"words": (words, h)}
        for layer in range(1, self.layers + 1):
            found |= {f"input{layer}": (h, 4 * h), f"state{layer}": (h, 4 * h), f"bias{layer}": (2, 4 * h)}
        return found | {"c": (words,)}

    def start_of_block(self, name: str, shape: tuple[int, ...], rng: Generator) -> Vector:
        """Uniform: word vectors within 0.1, weights and biases of a layer within 1/√hidden, as in the paper's code; 0 for `c`."""
        largest = {"words": 0.1, "c": 0.0}.get(name, 1 / math.sqrt(self.hidden))
        return rng.uniform(-largest, largest, shape)

    def inputs(self, rows: Rows) -> NDArray[np.int32]:
        return rows.dense().astype(np.int32)

    def outputs(self, p: Arrays, a: Array, real: Array, drop: Dropout) -> Array:
        """The scores (chunk, T, V) of the next word."""
        h = drop(p["words"][a[:, :-1]], self.dropout)
        for layer in range(1, self.layers + 1):
            into = h @ p[f"input{layer}"] + p[f"bias{layer}"].sum(axis=0)
            h = drop(_recurrent(into, p[f"state{layer}"]), self.dropout)
        return h @ p["words"].T + p["c"]

    def losses(self, outputs: Array, a: Array, y: Array) -> Array:
        chances = jnp.take_along_axis(jax.nn.log_softmax(outputs), a[:, 1:, None], axis=2)
        return -chances[:, :, 0].mean(axis=1)

    def scores(self, x: Vector, rows: Rows) -> None:
        """None: those of all words would be too many to keep."""


def _recurrent(into: Array, w: Array) -> Array:
    """The states (n, T, h) of an LSTM layer whose gates get `into` (n, T, 4h) from the layer below."""

    def step(before: tuple[Array, Array], now: Array) -> tuple[tuple[Array, Array], Array]:
        h, c = before
        i, f, g, o = jnp.split(now + h @ w, 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zeros = jnp.zeros((into.shape[0], w.shape[0]), into.dtype)
    return lax.scan(step, (zeros, zeros), into.transpose(1, 0, 2))[1].transpose(1, 0, 2)
