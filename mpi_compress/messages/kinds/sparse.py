"""Kinds that hold some coordinates: rows of values, signs with one magnitude, GSpar's values and signs, and draws from a seed."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, log2

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core import arrays
from mpi_compress.kernels import hits
from mpi_compress.kernels import vectors as kernels
from mpi_compress.messages.kinds.base import Compressed, Flags, Indices, Sparse, Vector, index_bits


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


@dataclass(frozen=True, eq=False)
class Hybrid(Compressed):
    """s coordinates with their values, and r other coordinates ±magnitude (GSpar §2.3: Q_A and Q_B).

    Paper bits, b = FPP: min(s(b + log2 d) + r·log2 d + b, s·b + 2d + b), GSpar §2.3, which omits the r sign bits.
    """

    dim: int
    indices: Indices  # (s,) increasing
    values: Vector  # (s,)
    sign_indices: Indices  # (r,) increasing, none of them in `indices`
    negative: Flags  # (r,) True where the value is −magnitude
    magnitude: float

    @property
    def elements(self) -> int:
        return self.indices.size + self.sign_indices.size

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        kernels.scatter_add(self.indices, self.values, scale, out)
        kernels.signs_add(self.sign_indices, self.negative, scale * self.magnitude, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        indices = self.elements * log2(self.dim) if indices_counted else 0.0
        return self.indices.size * fpp + fpp + min(indices, 2 * self.dim)

    def is_finite(self) -> bool:
        return isfinite(self.magnitude) and bool(kernels.all_finite(self.values))

    def sparse(self) -> Sparse:
        indices = np.empty(self.elements, dtype=np.uint32)
        values = np.empty(self.elements)
        kernels.merge(self.indices, self.values, self.sign_indices, self.negative, self.magnitude, indices, values)
        return Sparse(self.dim, indices, values)

    def squared_norm(self) -> float:
        return float(self.values @ self.values) + self.sign_indices.size * self.magnitude * self.magnitude

    def checked(self, dim: int) -> "Hybrid":
        super().checked(dim)
        indices, order = arrays.increasing(self.indices, dim, "indices")
        sign_indices, sign_order = arrays.increasing(self.sign_indices, dim, "sign_indices")
        if np.intersect1d(indices, sign_indices).size:
            raise ValueError("an index is among indices and among sign_indices")
        values = arrays.floats(self.values, indices.shape, "values")[order]
        negative = arrays.flags(self.negative, sign_indices.shape, "negative")[sign_order]
        return Hybrid(dim, indices, values, sign_indices, negative, arrays.number(self.magnitude, "magnitude"))


@dataclass(frozen=True, eq=False)
class Drawn(Compressed):
    """Values at coordinates that sender and receiver draw from one seed, each with chance κ.  Paper bits: T·FPP."""

    dim: int
    seed: int  # of 64 bits
    kappa: float  # κ; known to both ends
    values: Vector  # (T,)

    @cached_property
    def indices(self) -> Indices:
        """(T,) increasing."""
        return uniform_indices(self.dim, self.kappa, np.random.Generator(np.random.Philox(key=self.seed)))

    @property
    def elements(self) -> int:
        return self.values.size

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        kernels.scatter_add(self.indices, self.values, scale, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return self.values.size * fpp

    def is_finite(self) -> bool:
        return bool(kernels.all_finite(self.values))

    def sparse(self) -> Sparse:
        return Sparse(self.dim, self.indices, self.values)

    def checked(self, dim: int) -> "Drawn":
        super().checked(dim)
        return Drawn(dim, self.seed, self.kappa, arrays.floats(self.values, self.indices.shape, "values"))


def uniform_indices(dim: int, kappa: float, rng: np.random.Generator) -> Indices:
    """Increasing indices below dim, each drawn with chance κ: the gaps between them are geometric."""
    expected = kappa * dim
    many = int(expected + 6 * expected**0.5) + 16  # nearly always enough in one draw
    at = np.cumsum(_gaps(dim, kappa, many, rng)) - 1
    while at[-1] < dim:
        at = np.append(at, at[-1] + np.cumsum(_gaps(dim, kappa, many, rng)))
    return at[: np.searchsorted(at, dim)].astype(np.uint32)


def _gaps(dim: int, kappa: float, many: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """`many` geometric numbers. Those above dim, which may not fit 64 bits, are set to dim + 1 so that their sums fit."""
    with np.errstate(over="ignore", invalid="ignore"):
        drawn = rng.geometric(kappa, many)
    return np.where((drawn < 1) | (drawn > dim), dim + 1, drawn)
