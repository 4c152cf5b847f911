"""Vectors of few numbers: matrices of low rank, of which a triangle is a vector, and linear maps drawn from a seed."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isqrt, prod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core import arrays
from mpi_compress.core.streams import keyed
from mpi_compress.kernels.triangles import add_pairs, square, triangle
from mpi_compress.kernels.vectors import levels_add
from mpi_compress.messages import fields as written
from mpi_compress.messages.fields import Field, Reader
from mpi_compress.messages.formats import FloatFormat
from mpi_compress.messages.kinds.base import FromSeed, Places, SideInfo, Stacked, Vector, replaced

__all__ = ["Eigenpairs", "Projections", "Sketch", "side_of", "square", "triangle"]


@dataclass(eq=False)
class Eigenpairs(Stacked):
    """Σ_r λ_r u_r u_rᵀ as `triangle` writes a matrix, its first `dim` entries.  Paper bits: FPP·R(s + 1), s the matrix's side."""

    floats, layouts = ("values", "vectors"), ("eigenpairs",)
    dim: int
    values: Vector  # (R,) λ_r
    vectors: Vector  # (R, s) u_r

    @property
    def rows(self) -> int | None:
        return None if self.values.ndim == 1 else len(self.values)

    @property
    def elements(self) -> Any:
        """The numbers sent."""
        sent = self.vectors.shape[-2] * (1 + self.vectors.shape[-1])
        return sent if self.rows is None else np.full(self.rows, sent)

    def add_rows(self, out: Vector, scale: float, to: Places) -> None:
        for i, place in enumerate(to):
            add_pairs(self.dim, self.values[i], self.vectors[i], scale, out[place])

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> Any:
        return self.elements * fpp

    def checked(self, dim: int) -> "Eigenpairs":
        super().checked(dim)
        shape = (np.size(self.values), side_of(dim))
        values, vectors = arrays.floats(self.values, shape[:1], "values"), arrays.floats(self.vectors, shape, "vectors")
        return replace(self, values=values, vectors=vectors)

    def write(self, form: FloatFormat) -> list[Field]:
        m, R, s = self.vectors.shape
        numbers = np.concatenate([self.values, self.vectors.reshape(m, R * s)], axis=1)
        return [written.floats(numbers.ravel(), written.equal_ends(*numbers.shape), form)]

    @classmethod
    def read(cls, r: Reader, dim: int, known: SideInfo) -> "Eigenpairs":
        rank, s = known["rank"], side_of(dim)
        numbers = r.floats(rank * (s + 1)).reshape(-1, rank * (s + 1))
        return Eigenpairs(dim, numbers[:, :rank].copy(), numbers[:, rank:].reshape(-1, rank, s))


def side_of(dim: int) -> int:
    """The least s with s(s + 1)/2 ≥ dim: the side of the matrix whose triangle such a vector is, or begins."""
    return (isqrt(8 * dim - 7) + 1) // 2


class LinearMap(FromSeed):
    """The image of a vector under a linear map that both ends draw from one seed. The `axes` of the numbers have the lengths that
    both ends know by these names."""

    axes: ClassVar[tuple[str, ...]]
    dim: int
    seed: Any  # all workers of a round have the same

    @property
    def held(self) -> Vector:
        """The numbers, of rows with an axis more."""
        return getattr(self, self.floats[0])

    @property
    def rows(self) -> int | None:
        return None if np.ndim(self.held) == len(self.axes) else len(self.held)

    @property
    def elements(self) -> Any:
        """The numbers sent."""
        return self.held.size if self.rows is None else np.full(self.rows, self.held[0].size)

    def add_rows(self, out: Vector, scale: float, to: Places) -> None:
        with np.errstate(invalid="ignore", over="ignore"):  # ∞ − ∞
            estimates = np.array([self[i].estimate() for i in range(len(self))])
        levels_add(estimates, np.ones((len(self), 1)), self.dim, scale, to, out)

    def estimate(self) -> Vector:
        """One vector (d,): the mean of its estimates, added one after another."""
        total = np.zeros(self.dim)
        for each in self.estimates():
            total += each
        return total / len(self.held)

    @abstractmethod
    def estimates(self) -> Iterator[Vector]:
        """Estimates of one vector (d,), each from a number, or row, of those sent."""

    def checked(self, dim: int) -> Self:
        super().checked(dim)
        name, numbers = self.floats[0], self.held
        if not (np.ndim(numbers) == len(self.axes) and np.size(numbers)):
            raise ValueError(f"{name}: the shape {np.shape(numbers)} was given; the axes should be {', '.join(self.axes)}")
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed = {self.seed}; it should have 32 bits")
        return replaced(self, **{name: arrays.floats(numbers, np.shape(numbers), name)})

    @classmethod
    def read(cls, r: Reader, dim: int, known: SideInfo) -> Self:
        seed, shape = r.wholes("<u4", "a seed"), tuple(known[axis] for axis in cls.axes)
        return cls(**{"dim": dim, cls.floats[0]: r.floats(prod(shape)).reshape(-1, *shape), "seed": seed})


@dataclass(eq=False)
class Sketch(LinearMap):
    """v_j = (1/r) Σ_i s_i(j)·table[i, h_i(j)], with hashes h_i and signs s_i that both ends draw from one seed. Sketches of one
    seed are linear: the mean of vectors has the mean of their tables."""

    floats, axes = ("table",), ("rows", "columns")
    dim: int
    table: Vector  # (r, b)
    seed: Any

    def estimates(self) -> Iterator[Vector]:
        drawn = hashes(self.dim, self.seed, *self.table.shape)
        return (sign * row[bucket] for row, (bucket, sign) in zip(self.table, drawn, strict=True))


@dataclass(eq=False)
class Projections(LinearMap):
    """(1/m) Σ_j p_j ξ_j, with Gaussian vectors ξ_j (d,) that both ends draw from one seed."""

    floats, axes = ("values",), ("m",)
    dim: int
    values: Vector  # (m,) p_j = ⟨v, ξ_j⟩
    seed: Any

    def estimates(self) -> Iterator[Vector]:
        return (p * ξ for p, ξ in zip(self.values, gaussians(self.dim, self.seed, self.values.size), strict=True))


@lru_cache(maxsize=2)
def gaussians(dim: int, seed: int, m: int) -> Vector:
    """The ξ_j of a round as rows (m, d), independent standard normal numbers; its workers share them."""
    return keyed(seed).standard_normal((m, dim))


@lru_cache(maxsize=4)
def hashes(dim: int, seed: int, rows: int, width: int) -> list[tuple[NDArray[np.uint32], NDArray[np.int8]]]:
    """The bucket below `width` of every coordinate (d,) and its sign ±1 (d,), for each row; a round's workers share them."""
    rng = keyed(seed)
    drawn = (rng.integers(2 * width, size=dim, dtype=np.uint32) for _ in range(rows))
    return [(each >> np.uint32(1), 1 - 2 * (each & np.uint32(1)).astype(np.int8)) for each in drawn]
