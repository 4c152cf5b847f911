from collections.abc import Sequence
from typing import Annotated

import numpy as np
from numpy.random import Generator

from mpi_compress.core.fields import within
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.partitions.base import RowNumbers, SizedPartition, partitions


@partitions.register("mix")
class Mix(SizedPartition):
    """A share p̂ of the rows by label, the rest shuffled: between "shuffled" (p̂ = 0) and "by-label" (p̂ = 1).

    The seed draws which ⌊p̂N⌋ rows are sorted by label. Every worker has a slice of these and a slice of the others, in the same
    proportion but for one row. No row is left out or repeated: f is the mean over all rows, whatever p̂ is. (Papers that replace
    rows by those of a hold-out shard change f with p̂.)
    """

    share: Annotated[float, within("[0, 1]")] = 0.5  # p̂

    def deal(self, labels: Vector, n: int, rng: Generator) -> Sequence[RowNumbers]:
        ends = self.cuts(labels.size, n, rng)
        taken = int(self.share * labels.size)
        rows = rng.permutation(labels.size)
        by_label, others = np.sort(rows[:taken]), rows[taken:]
        by_label = by_label[np.argsort(labels[by_label], kind="stable")]
        first = ends * taken // labels.size  # as many of a worker's rows are by label as are of all rows
        parts = zip(np.split(by_label, first[1:-1]), np.split(others, (ends - first)[1:-1]), strict=True)
        return [np.concatenate(part) for part in parts]
