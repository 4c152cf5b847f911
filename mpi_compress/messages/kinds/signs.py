from dataclasses import dataclass
from math import isfinite

import numpy as np

from mpi_compress.core import arrays
from mpi_compress.kernels import hits
from mpi_compress.kernels import vectors as kernels
from mpi_compress.messages.kinds.base import Compressed, Flags, Indices, Sparse, Vector, index_bits


@dataclass(frozen=True, eq=False)
class SignSparse(Compressed):
    """T coordinates ±magnitude, the others 0.  Paper bits: FPP + T⌈log2 d⌉, CAT eq. 5, which omits the T sign bits."""

    dim: int
    indices: Indices  # (T,) increasing
    negative: Flags  # (T,) True where the value is −magnitude
    magnitude: float

    @classmethod
    def at(cls, v: Vector, indices: Indices, magnitude: float) -> "SignSparse":
        """magnitude·sign(v_j) at the increasing `indices`, without those where v (d,) is 0."""
        values = np.empty(indices.size)
        hits.take(v, indices, values)
        if not np.all(values):
            indices, values = indices[values != 0], values[values != 0]
        return cls(v.size, indices, values < 0, magnitude)

    @property
    def elements(self) -> int:
        return self.indices.size

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        kernels.signs_add(self.indices, self.negative, scale * self.magnitude, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return fpp + self.indices.size * index_bits(self.dim) * indices_counted

    def is_finite(self) -> bool:
        return isfinite(self.magnitude)

    def sparse(self) -> Sparse:
        return Sparse(self.dim, self.indices, np.where(self.negative, -self.magnitude, self.magnitude))

    def checked(self, dim: int) -> "SignSparse":
        super().checked(dim)
        indices, order = arrays.increasing(self.indices, dim, "indices")
        negative = arrays.flags(self.negative, indices.shape, "negative")[order]
        return SignSparse(dim, indices, negative, arrays.number(self.magnitude, "magnitude"))
