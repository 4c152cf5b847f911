"""The contract of a partition: rows are put in an order, and worker i of n has the i-th of n slices, equal but for one row."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.registry import Part, Registry
from mpi_compress.messages.kinds import Vector


@dataclass(frozen=True)
class Partition(Part, ABC):
    """An order of rows."""

    seeded: ClassVar[bool] = False  # True if the run's seed changes the order

    @abstractmethod
    def order(self, labels: Vector, seed: int) -> NDArray[np.int64]:
        """The rows (N,) of a file in the order in which they are dealt; labels (N,) are ±1 or numbers, the seed is the run's."""


partitions: Registry[Partition] = Registry("partition", Partition)
