from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core import arrays
from mpi_compress.messages.kinds.base import Indices, Vector
from mpi_compress.messages.kinds.shared_seed import SharedSeed


@dataclass(frozen=True, eq=False)
class Permuted(SharedSeed):
    """Values at one block of a random permutation that sender and receiver draw from one seed.  Paper bits: T·FPP."""

    dim: int
    seed: int  # of 32 bits; all workers of a round have the same
    part: int  # which block
    parts: int  # how many blocks; known to both ends
    values: Vector  # (T,)

    @cached_property
    def indices(self) -> Indices:
        """(T,) increasing."""
        return permuted_indices(self.dim, self.seed, self.part, self.parts)

    def checked(self, dim: int) -> "Permuted":
        super().checked(dim)
        if not (0 <= self.seed < 2**32 and 0 <= self.part < self.parts):
            raise ValueError(f"seed = {self.seed} and part = {self.part} of {self.parts} name no block of a permutation")
        return Permuted(dim, self.seed, self.part, self.parts, arrays.floats(self.values, self.indices.shape, "values"))


def permuted_indices(dim: int, seed: int, part: int, parts: int) -> Indices:
    """The increasing coordinates of a block: d ≥ parts: of near-equal blocks of a permutation, which go to parts at random;
    d < parts: one coordinate each, every coordinate as often as another, or once more."""
    order, place = _permutations(dim, seed, parts)
    at = int(place[part])
    return np.sort(order[at * dim // parts : (at + 1) * dim // parts] if parts <= dim else order[[at % dim]])


@lru_cache(maxsize=4)
def _permutations(dim: int, seed: int, parts: int) -> tuple[Indices, NDArray[np.int64]]:
    """A permutation of the coordinates, and one of the blocks: n workers draw the same, so it is drawn once."""
    rng = np.random.Generator(np.random.Philox(key=seed))
    return rng.permutation(dim).astype(np.uint32), rng.permutation(parts)
