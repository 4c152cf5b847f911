"""Symmetric matrices as vectors: the entries of one triangle, so weighted that both have one norm; and those of low rank."""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core import arrays
from mpi_compress.kernels import vectors as kernels
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
        with np.errstate(invalid="ignore", over="ignore"):  # ∞ − ∞
            M = (self.vectors.T * self.values) @ self.vectors
        kernels.dense_add(triangle(M)[: self.dim], scale, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return self.elements * fpp

    def is_finite(self) -> bool:
        return super().is_finite() and bool(kernels.all_finite(self.vectors.ravel()))

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


def triangle(M: Vector) -> Vector:
    """A symmetric M (s, s) as (s(s + 1)/2,): its lower triangle by rows, off the diagonal times √2, so that its norm is ‖M‖_F."""
    at, off = _places(len(M))
    v = M.ravel()[at]
    v[off] *= np.sqrt(2.0)
    return v


def square(v: Vector) -> Vector:
    """The symmetric matrix (s, s) whose `triangle` begins with v (dim,), 0 after it; both halves are equal to the last bit."""
    s = side_of(v.size)
    at, off = _places(s)
    entries = np.zeros(at.size)
    entries[: v.size] = v
    entries[off] /= np.sqrt(2.0)
    M = np.zeros((s, s))
    M.ravel()[at] = entries
    return M + np.tril(M, -1).T


@lru_cache(maxsize=2)
def _places(s: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where the entries of the lower triangle lie in a flat matrix (s, s), and which are off the diagonal."""
    row, column = np.tril_indices(s)
    return row * s + column, row != column
