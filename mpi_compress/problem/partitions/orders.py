"""Partitions that put all rows in an order and cut it into slices."""

from typing import Literal

import numpy as np

from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.partitions.base import RowNumbers, SizedPartition, partitions


@partitions.register("contiguous")
class Contiguous(SizedPartition):
    """Rows in the order of the file."""

    seeded = False

    def order(self, labels: Vector, seed: int) -> RowNumbers:
        return np.arange(labels.size)


@partitions.register("shuffled")
class Shuffled(SizedPartition):
    """Rows in an order that the seed draws."""

    def order(self, labels: Vector, seed: int) -> RowNumbers:
        return np.random.default_rng([seed, labels.size]).permutation(labels.size)


@partitions.register("by-label")
class ByLabel(SizedPartition):
    """Rows by increasing label, so that most workers see one class only; rows of equal labels stay in the order of the file."""

    seeded = False

    def order(self, labels: Vector, seed: int) -> RowNumbers:
        return np.argsort(labels, kind="stable")


@partitions.register("sorted")
class Sorted(ByLabel):
    """Rows by increasing label, or by increasing value of a feature; rows of equal values stay in the order of the file."""

    by: Literal["label"] | int = "label"  # or a feature, counted from 1 as in LIBSVM text

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.by, int) and self.by < 1:
            raise ValueError(f"by = {self.by} must be a feature, which are counted from 1")

    @property
    def feature(self) -> int | None:
        return self.by if isinstance(self.by, int) else None
