from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.partitions.base import Partition, partitions


@partitions.register("contiguous")
@dataclass(frozen=True)
class Contiguous(Partition):
    """Rows in the order of the file."""

    def order(self, labels: Vector, seed: int) -> NDArray[np.int64]:
        return np.arange(labels.size)
