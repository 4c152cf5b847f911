from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from mpi_compress.messages.kinds.base import Compressed, Indices, Vector

__all__ = ["Samples"]


@dataclass(frozen=True, eq=False)
class Samples(Compressed):
    """Rows of a data set with their labels, which are no vector and cannot be added.  Paper bits: those of the message itself."""

    floats = ("values", "labels")
    dim: int
    lengths: NDArray[np.int64]  # (N,) nonzeros of each row
    indices: Indices  # (nonzeros,) increasing in each row
    values: Vector  # (nonzeros,)
    labels: Vector  # (N,)
    nbytes: int = 0  # of the message that they were read from

    @property
    def elements(self) -> int:
        return self.values.size

    def add_to(self, out: Vector, scale: float = 1.0) -> NoReturn:
        raise ValueError("rows of data are no vector, and cannot be added")

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return 8.0 * self.nbytes
