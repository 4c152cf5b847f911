from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core import arrays
from mpi_compress.kernels import vectors as kernels
from mpi_compress.messages.kinds.base import Compressed, Vector


@dataclass(frozen=True, eq=False)
class Sketch(Compressed):
    """v_j = (1/r) Σ_i s_i(j)·table[i, h_i(j)], with hashes h_i and signs s_i that both ends draw from one seed.

    Sketches of one seed are linear: the mean of vectors has the mean of their tables.  Paper bits: FPP·r·b.
    """

    dim: int
    table: NDArray[np.float64]  # (r, b)
    seed: int  # 32 bits; all workers of a round have the same

    @property
    def elements(self) -> int:
        """The numbers sent."""
        return self.table.size

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        rows, width = self.table.shape
        estimate = np.zeros(self.dim)
        with np.errstate(invalid="ignore"):  # ∞ − ∞
            for row, (bucket, sign) in zip(self.table, hashes(self.dim, self.seed, rows, width), strict=True):
                estimate += sign * row[bucket]
        kernels.dense_add(estimate / rows, scale, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return self.table.size * fpp

    def is_finite(self) -> bool:
        return bool(kernels.all_finite(self.table.ravel()))

    def checked(self, dim: int) -> "Sketch":
        super().checked(dim)
        if not (np.ndim(self.table) == 2 and np.size(self.table)):
            raise ValueError(f"table has shape {np.shape(self.table)}; it should be (rows, columns)")
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed = {self.seed}; it should have 32 bits")
        return Sketch(dim, arrays.floats(self.table, np.shape(self.table), "table"), self.seed)


@dataclass(frozen=True, eq=False)
class Projections(Compressed):
    """(1/m) Σ_j p_j ξ_j, with Gaussian vectors ξ_j (d,) that both ends draw from one seed.  Paper bits: FPP·m."""

    dim: int
    values: NDArray[np.float64]  # (m,) p_j = ⟨v, ξ_j⟩
    seed: int  # 32 bits; all workers of a round have the same

    @property
    def elements(self) -> int:
        """The numbers sent."""
        return self.values.size

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        estimate = np.zeros(self.dim)
        with np.errstate(invalid="ignore", over="ignore"):  # ∞ − ∞
            for p, ξ in zip(self.values, gaussians(self.dim, self.seed, self.values.size), strict=True):
                estimate += p * ξ
        kernels.dense_add(estimate / self.values.size, scale, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return self.values.size * fpp

    def is_finite(self) -> bool:
        return bool(kernels.all_finite(self.values))

    def checked(self, dim: int) -> "Projections":
        super().checked(dim)
        if not (np.ndim(self.values) == 1 and np.size(self.values)):
            raise ValueError(f"values have shape {np.shape(self.values)}; it should be (m,)")
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed = {self.seed}; it should have 32 bits")
        return Projections(dim, arrays.floats(self.values, np.shape(self.values), "values"), self.seed)


@lru_cache(maxsize=2)
def gaussians(dim: int, seed: int, m: int) -> NDArray[np.float64]:
    """The ξ_j of a round as rows (m, d), independent standard normal numbers; its workers share them."""
    return np.random.Generator(np.random.Philox(key=seed)).standard_normal((m, dim))


@lru_cache(maxsize=4)
def hashes(dim: int, seed: int, rows: int, width: int) -> list[tuple[NDArray[np.uint32], NDArray[np.int8]]]:
    """The bucket below `width` of every coordinate (d,) and its sign ±1 (d,), for each row; a round's workers share them."""
    rng = np.random.Generator(np.random.Philox(key=seed))
    drawn = (rng.integers(2 * width, size=dim, dtype=np.uint32) for _ in range(rows))
    return [(each >> np.uint32(1), 1 - 2 * (each & np.uint32(1)).astype(np.int8)) for each in drawn]
