from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpi_compress.kernels import vectors as kernels
from mpi_compress.messages.kinds.base import Indices, Sparse, Vector


@dataclass(eq=False)
class SparseRows:
    """m sparse vectors of `dim` coordinates, one after the other, to be compressed, written and read by one call."""

    dim: int
    indices: Indices  # (T,) of all vectors, those of each increasing
    values: Vector  # (T,)
    ends: NDArray[np.int64]  # (m,) where each vector ends

    def __iter__(self) -> Iterator[Sparse]:
        finite, start = bool(kernels.all_finite(self.values)), 0
        for end in self.ends.tolist():
            yield Sparse(self.dim, self.indices[start:end], self.values[start:end], finite)
            start = end
