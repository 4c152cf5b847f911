from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core import arrays
from mpi_compress.messages.kinds.base import Indices, Vector
from mpi_compress.messages.kinds.shared_seed import SharedSeed


@dataclass(frozen=True, eq=False)
class Drawn(SharedSeed):
    """Values at coordinates that sender and receiver draw from one seed, each with chance κ.  Paper bits: T·FPP."""

    dim: int
    seed: int  # of 64 bits
    kappa: float  # κ; known to both ends
    values: Vector  # (T,)

    @cached_property
    def indices(self) -> Indices:
        """(T,) increasing."""
        return uniform_indices(self.dim, self.kappa, np.random.Generator(np.random.Philox(key=self.seed)))

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
