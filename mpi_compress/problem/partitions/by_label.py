from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.partitions.base import Partition, partitions


@partitions.register("by-label")
@dataclass(frozen=True)
class ByLabel(Partition):
    """Rows by increasing label, so that most workers see one class only; rows of equal labels stay in the order of the file."""

    def order(self, labels: Vector, seed: int) -> NDArray[np.int64]:
        return np.argsort(labels, kind="stable")
