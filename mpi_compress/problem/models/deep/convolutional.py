"""Convolutional networks of images: the shape of an image, convolutions, batch statistics, cross-entropy."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpi_compress.problem.models.base import Generator, Rows, Shapes, Vector, models
from mpi_compress.problem.models.deep.framework import lax
from mpi_compress.problem.models.deep.network import Array, Arrays, AtLeastOne, Dropout, Network, jax, jnp


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


@models.register("gspar-cnn")
class GSparCNN(ImageNetwork):
    """The convolutional network of GSpar (Wangni, Wang, Liu, Zhang 2018, §4, Deep learning), in JAX.

    Three 3 × 3 convolutions, each with batch normalisation and ReLU, a 2 × 2 maximum after the first two, then a fully connected
    layer. Batch normalisation takes the statistics of the chunk, in tests too: there are no running ones.
    """

    channels: AtLeastOne = 24  # of each convolution; 24, 32, 48 or 64 in the paper
    hidden: AtLeastOne = 256  # units of the fully connected layer

    @property
    def blocks(self) -> Shapes:
        (height, width, of_image), c = self.image, self.channels
        found: dict[str, tuple[int, ...]] = {}
        for i, before in enumerate((of_image, c, c), start=1):
            found |= {f"conv{i}": (3, 3, before, c), f"scale{i}": (c,), f"shift{i}": (c,)}
        flat, classes = (height // 4) * (width // 4) * c, self.outline.classes
        return found | {"W": (flat, self.hidden), "b": (self.hidden,), "V": (self.hidden, classes), "c": (classes,)}

    def outputs(self, p: Arrays, a: Array, real: Array, drop: Dropout) -> Array:
        h = a
        for i in (1, 2, 3):
            h = jax.nn.relu(normalised(convolution(h, p[f"conv{i}"]), p[f"scale{i}"], p[f"shift{i}"], real))
            h = pooled(h) if i < 3 else h
        h = jax.nn.relu(h.reshape(h.shape[0], -1) @ p["W"] + p["b"])
        return h @ p["V"] + p["c"]


@models.register("resnet-8")
class ResNet8(ImageNetwork):
    """A small residual network for images (He, Zhang, Ren, Sun 2016, §4.2), in JAX: 7 convolutions and a fully connected layer.

    A convolution, then stages of residual units of two 3 × 3 convolutions each. Every stage but the first halves the image and
    doubles the channels, with a 1 × 1 convolution on its shortcut. Batch normalisation takes the statistics of the chunk, in tests
    too: there are no running ones, so f depends on `chunk`.
    """

    width: AtLeastOne = 16  # channels of the first stage
    stages: AtLeastOne = 3  # each with half the height and width of the one before
    units: AtLeastOne = 1  # residual units of a stage

    @property
    def blocks(self) -> Shapes:
        found = _convolution("first", 3, self.image[2], self.width)
        for name, before, after, stride in self._units():
            found |= _convolution(f"{name}.a", 3, before, after) | _convolution(f"{name}.b", 3, after, after)
            found |= _convolution(f"{name}.shortcut", 1, before, after) if stride > 1 else {}
        return found | {"W": (self.width * 2 ** (self.stages - 1), self.outline.classes), "c": (self.outline.classes,)}

    def outputs(self, p: Arrays, a: Array, real: Array, drop: Dropout) -> Array:
        def layer(name: str, h: Array, stride: int = 1) -> Array:
            return normalised(convolution(h, p[f"{name}.w"], stride), p[f"{name}.scale"], p[f"{name}.shift"], real)

        h = jax.nn.relu(layer("first", a))
        for name, _, _, stride in self._units():
            shortcut = layer(f"{name}.shortcut", h, stride) if stride > 1 else h
            h = jax.nn.relu(shortcut + layer(f"{name}.b", jax.nn.relu(layer(f"{name}.a", h, stride))))
        return h.mean(axis=(1, 2)) @ p["W"] + p["c"]

    def _units(self) -> Iterator[tuple[str, int, int, int]]:
        """Name, channels before and after, and stride of every residual unit."""
        before = self.width
        for stage in range(self.stages):
            for unit in range(self.units):
                after = self.width * 2**stage
                yield f"{stage + 1}.{unit + 1}", before, after, 2 if stage and not unit else 1
                before = after


@models.register("resnet-18")
class ResNet18(ResNet8):
    """`resnet-8` with 18 layers, as the hard-threshold paper trains it on CIFAR-10: d = 11,173,962."""

    width: AtLeastOne = 64  # channels of the first stage
    stages: AtLeastOne = 4  # each with half the height and width of the one before
    units: AtLeastOne = 2  # residual units of a stage


def _convolution(name: str, size: int, before: int, after: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.w": (size, size, before, after), f"{name}.scale": (after,), f"{name}.shift": (after,)}


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
