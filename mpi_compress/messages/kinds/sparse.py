from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core import arrays
from mpi_compress.kernels import vectors as kernels
from mpi_compress.messages.kinds.base import Compressed, Indices, Vector, index_bits


@dataclass(eq=False)  # not frozen: that would take a quarter of the time to write and read a short message
class Sparse(Compressed):
    """T coordinates with their values, the others 0.  Paper bits: T(⌈log2 d⌉ + FPP), CAT eq. 5."""

    dim: int
    indices: Indices  # (T,) increasing
    values: Vector  # (T,)
    seen_finite: bool = False  # True if all values are known to be finite

    @property
    def elements(self) -> int:
        return self.indices.size

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        kernels.scatter_add(self.indices, self.values, scale, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return self.indices.size * self.bits_per_element(self.dim, fpp, indices_counted)

    @staticmethod
    def bits_per_element(dim: int, fpp: int, indices_counted: bool = True) -> int:
        """The paper bits of one coordinate."""
        return index_bits(dim) * indices_counted + fpp

    def sparse(self) -> "Sparse":
        return self

    def is_finite(self) -> bool:
        return self.seen_finite or not self.values.size or bool(kernels.all_finite(self.values))

    def checked(self, dim: int) -> "Sparse":
        super().checked(dim)
        indices, order = arrays.increasing(self.indices, dim, "indices")
        return Sparse(dim, indices, arrays.floats(self.values, indices.shape, "values")[order])


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


@cache
def no_coordinates(dim: int) -> Sparse:
    """The vector 0 (dim,)."""
    return Sparse(dim, np.empty(0, dtype=np.uint32), np.empty(0))
