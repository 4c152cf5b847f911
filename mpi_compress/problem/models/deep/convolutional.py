"""Convolutional networks of images."""

from collections.abc import Iterator, Mapping

from mpi_compress.core.fields import AtLeastOne
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

    def outputs(self, p: Mapping[str, Array], a: Array, real: Array, drop: Dropout) -> Array:
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
    def blocks(self) -> Mapping[str, tuple[int, ...]]:
        found = _convolution("first", 3, self.image[2], self.width)
        for name, before, after, stride in self._units():
            found |= _convolution(f"{name}.a", 3, before, after) | _convolution(f"{name}.b", 3, after, after)
            found |= _convolution(f"{name}.shortcut", 1, before, after) if stride > 1 else {}
        return found | {"W": (self.width * 2 ** (self.stages - 1), self.outline.classes), "c": (self.outline.classes,)}

    def outputs(self, p: Mapping[str, Array], a: Array, real: Array, drop: Dropout) -> Array:
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
