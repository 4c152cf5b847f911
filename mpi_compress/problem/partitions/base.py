"""The contract of a partition: which rows of a set each of n workers has."""

import math
from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from mpi_compress.core import arrays
from mpi_compress.core.registry import Part, Registry
from mpi_compress.core.returned import returns
from mpi_compress.messages.kinds import Vector

RowNumbers = NDArray[np.int64]  # rows of a set, counted from 0
_LARGEST_SIGMA = 100


def _each_once(given: Any, n: int, N: int) -> list[RowNumbers]:
    """The rows of n workers; ValueError unless they are 0 … N − 1, each once."""
    if not isinstance(given, Sequence | np.ndarray) or len(given) != n:
        raise ValueError(f"{arrays.shown(given)} was given; it should be sample numbers (m,) of each of {n} workers")
    shards = [arrays.whole(rows, (np.size(rows),), "sample numbers", 0, N - 1).astype(np.int64) for rows in given]
    times = np.bincount(np.concatenate(shards), minlength=N)
    for wrong, verb in ((times == 0, "leaves out"), (times > 1, "assigns twice")):
        if wrong.any():
            such = f"{wrong.sum()} of {N} samples, such as sample {wrong.argmax()}"
            raise ValueError(f"it {verb} {such}; every sample goes to one worker")
    return shards


class Unlucky(ValueError):
    """What this seed draws does not do; another may."""


@dataclass(frozen=True)
class Partition(Part, ABC):
    """Deals the rows of a set to workers; every row goes to one worker, and every worker has rows. A subclass defines one of two
    methods: `deal`, which gives each worker its rows; or `order`, which puts all rows in an order, of which each worker has a
    slice, as long as any other but for one row."""

    shared: ClassVar[bool] = False  # True: every worker has all rows, and f_i = f
    seeded: ClassVar[bool] = True  # False: the run's seed changes nothing, and the prepared rows serve runs of any seed

    @property
    def feature(self) -> int | None:
        """The feature, counted from 1, whose values (N,) `deal` and `order` get in place of labels; None: they get labels."""
        return None

    @returns(lambda partition, given, labels, n, *_: _each_once(given, n, labels.size))
    def deal(self, labels: Vector, n: int, rng: Generator) -> Sequence[RowNumbers]:
        """The rows of each of n workers, in the order in which the worker has them.

        Args:
            labels: (N,) of all rows as the run has them: ±1, classes 0, 1, 2, …, or numbers; or the values of `feature`.
            rng: random numbers that follow from the run's seed, N and n.

        Raises:
            ValueError: these rows cannot be assigned like that; the text says why.
        """
        order = self.order(labels, int(rng.integers(2**32)))
        return np.split(order, slices(self, labels.size, n, rng)[1:-1])

    @returns(lambda partition, given, labels, *_: _each_once([given], 1, labels.size)[0])
    def order(self, labels: Vector, seed: int) -> RowNumbers:
        """All rows (N,) in the order in which slices are cut; labels (N,) as for `deal`, the seed is the run's."""
        raise ValueError("it defines neither deal nor order")


@dataclass(frozen=True)
class SizedPartition(Partition):
    """A partition that cuts slices, which may be of unequal length."""

    sizes: list[float] | float | None = None  # shares, one a worker; or σ: sizes ∝ exp(σ ξ_i), ξ_i ~ N(0, 1); None: equal

    def __post_init__(self) -> None:
        super().__post_init__()
        each = self.sizes if isinstance(self.sizes, list) else []
        if not all(0 < share < math.inf for share in each):
            raise ValueError(f"sizes = {each} must be shares above 0, one for each worker")
        if isinstance(self.sizes, float | int) and not 0 <= self.sizes <= _LARGEST_SIGMA:
            raise ValueError(f"sizes = {self.sizes} must be from 0 to {_LARGEST_SIGMA}, or a list of shares, one for each worker")


def sizes_of(partition: Partition, n: int) -> list[float] | float | None:
    """The sizes of the slices that a partition cuts for n workers; None: equal but for one row; ValueError if there are others."""
    sizes: list[float] | float | None = getattr(partition, "sizes", None)
    if isinstance(sizes, list) and len(sizes) != n:
        raise ValueError(f"sizes has {len(sizes)} shares for {n} workers; give one for each worker")
    return sizes


def slices(partition: Partition, rows: int, n: int, rng: Generator) -> RowNumbers:
    """Where the n slices of an order begin, and its end (n+1,): at ⌊N · (the first shares' sum) / (the sum of all)⌋."""
    sizes = sizes_of(partition, n)
    if sizes is None:
        return np.arange(n + 1) * rows // n
    if isinstance(sizes, list):
        shares = np.array(sizes)
    else:
        exponents = sizes * rng.standard_normal(n)
        shares = np.exp(exponents - exponents.max())
    sums = np.concatenate([[0.0], np.cumsum(shares / shares.max())])
    return np.floor(sums / sums[-1] * rows * (1 + 1e-12)).clip(0, rows).astype(np.int64)


partitions: Registry[Partition] = Registry("partition", Partition)
