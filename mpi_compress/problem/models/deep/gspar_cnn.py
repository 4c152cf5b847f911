from collections.abc import Mapping

import numpy as np
from numpy.random import Generator

from mpi_compress.core.fields import AtLeastOne
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.models.base import models
from mpi_compress.problem.models.deep.framework import jax
from mpi_compress.problem.models.deep.images import ImageNetwork, convolution, normalised, pooled
from mpi_compress.problem.models.deep.network import Array, Dropout


@models.register("gspar-cnn")
class GSparCNN(ImageNetwork):
    """The convolutional network of GSpar (Wangni, Wang, Liu, Zhang 2018, §4, Deep learning), in JAX.

    Three 3 × 3 convolutions, each with batch normalisation and ReLU, a 2 × 2 maximum after the first two, then a fully connected
    layer. Batch normalisation takes the statistics of the chunk, in tests too: there are no running ones.
    """

    channels: AtLeastOne = 24  # of each convolution; 24, 32, 48 or 64 in the paper
    hidden: AtLeastOne = 256  # units of the fully connected layer

    @property
    def blocks(self) -> Mapping[str, tuple[int, ...]]:
        (height, width, of_image), c = self.image, self.channels
        found: dict[str, tuple[int, ...]] = {}
        for i, before in enumerate((of_image, c, c), start=1):
            found |= {f"conv{i}": (3, 3, before, c), f"scale{i}": (c,), f"shift{i}": (c,)}
        flat, classes = (height // 4) * (width // 4) * c, self.outline.classes
        return found | {"W": (flat, self.hidden), "b": (self.hidden,), "V": (self.hidden, classes), "c": (classes,)}

    def start_of_block(self, name: str, shape: tuple[int, ...], rng: Generator) -> Vector:
        return np.ones(shape) if name.startswith("scale") else super().start_of_block(name, shape, rng)

    def outputs(self, p: Mapping[str, Array], a: Array, real: Array, drop: Dropout) -> Array:
        h = a
        for i in (1, 2, 3):
            h = jax.nn.relu(normalised(convolution(h, p[f"conv{i}"]), p[f"scale{i}"], p[f"shift{i}"], real))
            h = pooled(h) if i < 3 else h
        h = jax.nn.relu(h.reshape(h.shape[0], -1) @ p["W"] + p["b"])
        return h @ p["V"] + p["c"]
