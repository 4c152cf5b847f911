import numpy as np
from numpy.typing import NDArray

from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.partitions.base import Partition, partitions


@partitions.register("contiguous")
class Contiguous(Partition):
    """Rows in the order of the file."""

    def order(self, labels: Vector, seed: int) -> NDArray[np.int64]:
        return np.arange(labels.size)


@partitions.register("shuffled")
class Shuffled(Partition):
    """Rows in an order that the seed draws."""

    seeded = True

    def order(self, labels: Vector, seed: int) -> NDArray[np.int64]:
        return np.random.default_rng([seed, labels.size]).permutation(labels.size)


@partitions.register("by-label")
class ByLabel(Partition):
    """Rows by increasing label, so that most workers see one class only; rows of equal labels stay in the order of the file."""

    def order(self, labels: Vector, seed: int) -> NDArray[np.int64]:
        return np.argsort(labels, kind="stable")
