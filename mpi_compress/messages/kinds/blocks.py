from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mpi_compress.core.sums import added
from mpi_compress.messages.kinds.base import Compressed, Sparse, Vector


@dataclass(frozen=True, eq=False)
class Blocks(Compressed):
    """Compressed vectors one after the other, as one vector.  Paper bits: the sum of theirs."""

    parts: tuple[Compressed, ...]
    codec: str  # the codec that writes each of them; known to both ends

    @cached_property
    def dim(self) -> int:
        return sum(part.dim for part in self.parts)

    @property
    def elements(self) -> int:
        return sum(part.elements for part in self.parts)

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        if out.size != self.dim:
            raise ValueError("two vectors that should have the same length have not")
        for start, part in self._placed:
            part.add_to(out[start : start + part.dim], scale)

    @property
    def _placed(self) -> Iterator[tuple[int, Compressed]]:
        """Each part with the coordinate that it begins at."""
        start = 0
        for part in self.parts:
            yield start, part
            start += part.dim

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return added(part.paper_bits(fpp, indices_counted) for part in self.parts)

    def is_finite(self) -> bool:
        return all(part.is_finite() for part in self.parts)

    def sparse(self) -> Sparse | None:
        found = [(start, part.sparse()) for start, part in self._placed]
        held = [(start, s) for start, s in found if s is not None]
        if len(held) < len(found):
            return None
        indices = np.concatenate([s.indices + np.uint32(start) for start, s in held])
        return Sparse(self.dim, indices, np.concatenate([s.values for _, s in held]))

    def checked(self, dim: int) -> "Blocks":
        super().checked(dim)
        return Blocks(tuple(part.checked(part.dim) for part in self.parts), self.codec)
