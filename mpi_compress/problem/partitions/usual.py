"""The partitions: rows in an order that is cut into slices, and shares of the labels unlike those of the whole set."""

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np

from mpi_compress.core.fields import AtLeastOne, Positive, within
from mpi_compress.problem.partitions.base import (
    Generator,
    Partition,
    RowNumbers,
    SizedPartition,
    Unlucky,
    Vector,
    partitions,
    slices,
)

_TRIES = 10


@partitions.register("contiguous")
class Contiguous(SizedPartition):
    """Rows in the order of the file: worker i has rows ⌊iN/n⌋ to ⌊(i+1)N/n⌋ − 1, counted from 0."""

    seeded = False

    def order(self, labels: Vector, seed: int) -> RowNumbers:
        return np.arange(labels.size)


@partitions.register("everyone")
class Everyone(Partition):
    """Every worker has all rows, so that f_i = f: the homogeneous setting. An epoch has as many gradients of samples as there are
    rows."""

    shared, seeded = True, False

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


@partitions.register("dirichlet")
class Dirichlet(Partition):
    """Each class is spread over workers by proportions drawn from Dir(α, …, α); a small α gives a class to few workers.

    The N_c rows of class c, shuffled, are cut at ⌊N_c · (the first proportions' sum)⌋. All proportions are drawn again until every
    worker has `least` rows, at most ten times. Each worker's rows are then shuffled. (Yurochkin et al. 2019; Hsu et al. 2019.)
    """

    alpha: Positive = 0.5  # α
    least: AtLeastOne = 10  # samples of every worker

    def deal(self, labels: Vector, n: int, rng: Generator) -> Sequence[RowNumbers]:
        if n * self.least > labels.size:
            raise ValueError(f"{n} workers of least = {self.least} each are more than the {labels.size} samples; lower least")
        classes, of_row = np.unique(labels, return_inverse=True)
        if 2 * classes.size > labels.size:
            raise ValueError(f"it spreads classes, and the {labels.size} samples have {classes.size} different labels")
        for _ in range(_TRIES):
            pieces = [self._pieces(np.flatnonzero(of_row == c), n, rng) for c in range(classes.size)]
            shards = [np.concatenate(own) for own in zip(*pieces, strict=True)]
            if min(shard.size for shard in shards) >= self.least:
                return [rng.permutation(shard) for shard in shards]
        raise Unlucky(
            f"in {_TRIES} draws there was always one of {n} workers with fewer than least = {self.least} samples; "
            "a larger alpha, a smaller least or fewer workers would do"
        )

    def _pieces(self, rows: RowNumbers, n: int, rng: Generator) -> list[RowNumbers]:
        """The rows of one class, cut into what each worker gets of them."""
        sums = np.cumsum(rng.dirichlet(np.full(n, self.alpha)))[:-1]
        return np.split(rng.permutation(rows), np.floor(rows.size * np.clip(sums, 0, 1)).astype(np.int64))


@partitions.register("mix")
class Mix(SizedPartition):
    """A share p̂ of the rows by label, the rest shuffled: between "shuffled" (p̂ = 0) and "by-label" (p̂ = 1).

    The seed draws which ⌊p̂N⌋ rows are sorted by label. Every worker has a slice of these and a slice of the others, in the same
    proportion but for one row. No row is left out or repeated: f is the mean over all rows, whatever p̂ is. (Papers that replace
    rows by those of a hold-out shard change f with p̂.)
    """

    share: Annotated[float, within("[0, 1]")] = 0.5  # p̂

    def deal(self, labels: Vector, n: int, rng: Generator) -> Sequence[RowNumbers]:
        ends = slices(self, labels.size, n, rng)
        taken = int(self.share * labels.size)
        rows = rng.permutation(labels.size)
        by_label, others = np.sort(rows[:taken]), rows[taken:]
        by_label = by_label[np.argsort(labels[by_label], kind="stable")]
        first = ends * taken // labels.size  # as many of a worker's rows are by label as are of all rows
        parts = zip(np.split(by_label, first[1:-1]), np.split(others, (ends - first)[1:-1]), strict=True)
        return [np.concatenate(part) for part in parts]
