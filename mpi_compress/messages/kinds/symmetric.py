"""Symmetric matrices as vectors: the entries of one triangle, so weighted that both have one norm; and those of low rank."""

from dataclasses import dataclass, replace
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core import arrays
from mpi_compress.kernels.symmetric import add_pairs, square, triangle
from mpi_compress.kernels.vectors import all_finite
from mpi_compress.messages.fields import Reader, float_bytes
from mpi_compress.messages.formats import FloatFormat
from mpi_compress.messages.kinds.base import Bytes, Known, SaysLayout, Vector

__all__ = ["Eigenpairs", "side_of", "square", "triangle"]


@dataclass(frozen=True, eq=False)
class Eigenpairs(SaysLayout):
    """Σ_r λ_r u_r u_rᵀ as `triangle` writes a matrix, its first `dim` entries.  Paper bits: FPP·R(s + 1), s the matrix's side."""

    floats, layouts = ("values",), ("eigenpairs",)
    dim: int
    values: Vector  # (R,) λ_r
    vectors: NDArray[np.float64]  # (R, s) u_r

    @property
    def elements(self) -> int:
        """The numbers sent."""
        return self.values.size + self.vectors.size

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        add_pairs(self.dim, self.values, self.vectors, scale, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return self.elements * fpp

    def is_finite(self) -> bool:
        return super().is_finite() and bool(all_finite(self.vectors.ravel()))

    def checked(self, dim: int) -> "Eigenpairs":
        super().checked(dim)
        shape = (np.size(self.values), side_of(dim))
        values, vectors = arrays.floats(self.values, shape[:1], "values"), arrays.floats(self.vectors, shape, "vectors")
        return replace(self, values=values, vectors=vectors)

    def write(self, form: FloatFormat) -> Bytes:
        return float_bytes(np.concatenate([self.values, self.vectors.ravel()]), form).copy()

    @classmethod
    def read(cls, r: Reader, dim: int, known: Known) -> "Eigenpairs":
        rank, s = known["rank"], side_of(dim)
        return Eigenpairs(dim, r.floats(rank), r.floats(rank * s).reshape(rank, s))


def side_of(dim: int) -> int:
    """The least s with s(s + 1)/2 ≥ dim: the side of the matrix whose triangle such a vector is, or begins."""
    return (isqrt(8 * dim - 7) + 1) // 2
