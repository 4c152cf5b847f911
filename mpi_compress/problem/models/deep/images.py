"""What networks of images share: the shape of an image, convolutions, batch statistics, cross-entropy."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.models.deep.framework import jax, jnp, lax
from mpi_compress.problem.models.deep.network import Array, Network
from mpi_compress.problem.rows import Rows


@dataclass(frozen=True)
class ImageNetwork(Network):
    """A network of images, whose loss is −log softmax(outputs)[y]."""

    @property
    def image(self) -> tuple[int, int, int]:
        """Height, width and channels: what the data say, or else a square of 1 or 3 channels."""
        features, sizes = self.outline.features, self.outline.sizes
        if sizes:
            return sizes["height"], sizes["width"], sizes["channels"]
        for channels in (1, 3):
            side = math.isqrt(features // channels)
            if channels * side * side == features:
                return side, side, channels
        raise ValueError(f"{self.name}: {features} features are no square image of 1 or 3 channels")

    def check(self) -> None:
        if self.outline.sizes and "height" not in self.outline.sizes:
            raise ValueError(f"{self.name} needs images; the samples of this set have {', '.join(self.outline.sizes)}")
        if self.outline.classes < 2:
            raise ValueError(f"{self.name} needs at least two classes; the labels have {self.outline.classes}")
        _ = self.image

    def start_of_block(self, name: str, shape: tuple[int, ...], rng: Generator) -> Vector:
        """As of any network, and 1 for the scales of batch normalisation."""
        return np.ones(shape) if "scale" in name else super().start_of_block(name, shape, rng)

    def inputs(self, rows: Rows) -> Any:
        return rows.dense().reshape(-1, *self.image)

    def losses(self, outputs: Array, a: Array, y: Array) -> Array:
        return -jnp.take_along_axis(jax.nn.log_softmax(outputs), y[:, None], axis=1)[:, 0]

    def scores(self, x: Vector, rows: Rows) -> Vector:
        return self.all_outputs(x, rows)


def convolution(h: Array, w: Array, stride: int = 1) -> Array:
    """h (n, height, width, in) * w (k, k, in, out), padded to the same size before the stride."""
    return lax.conv_general_dilated(h, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def normalised(h: Array, scale: Array, shift: Array, real: Array) -> Array:
    """Batch normalisation (Ioffe, Szegedy 2015) by mean and variance of each channel over the real rows of this chunk, always."""
    weight = real.reshape(-1, 1, 1, 1).astype(h.dtype)
    count = jnp.sum(weight) * h.shape[1] * h.shape[2]
    mean = jnp.sum(weight * h, axis=(0, 1, 2)) / count
    centred = h - mean
    variance = jnp.sum(weight * jnp.square(centred), axis=(0, 1, 2)) / count
    return centred * lax.rsqrt(variance + 1e-5) * scale + shift


def pooled(h: Array) -> Array:
    """The maxima of squares of 2 × 2; an odd last line is left out. Two numbers are compared at a time, since the derivative of a
    maximum over an axis looks for the entries that equal it. Where XLA computes the entries a second time and rounds them
    otherwise, none does, and the derivative is NaN."""
    _, height, width, _ = h.shape
    even = h[:, : height // 2 * 2, : width // 2 * 2]
    lines = jnp.maximum(even[:, ::2], even[:, 1::2])
    return jnp.maximum(lines[:, :, ::2], lines[:, :, 1::2])
