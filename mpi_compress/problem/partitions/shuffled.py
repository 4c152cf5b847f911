from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.partitions.base import Partition, partitions


@partitions.register("shuffled")
@dataclass(frozen=True)
class Shuffled(Partition):
    """Rows in an order that the seed draws."""

    seeded = True

    def order(self, labels: Vector, seed: int) -> NDArray[np.int64]:
        return np.random.default_rng([seed, labels.size]).permutation(labels.size)
