"""The contract of a robust mean."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.registry import Part, Registry
from mpi_compress.messages.kinds import Compressed, Dense, Sparse, Vector
from mpi_compress.messages.mean import is_few

Vectors = NDArray[np.float64]


@dataclass(frozen=True)
class RobustMean(Part, ABC):
    """A vector near most of n vectors, whatever f of them are."""

    paper: ClassVar[str] = ""

    @abstractmethod
    def of(self, vs: Vectors) -> Vector:
        """The vector (d,) of finite vectors vs (n, d), in worker order. It must not change them."""

    def among(self, n: int, f: int | None) -> Self:
        """This robust mean in a run of n workers.

        Args:
            f: how many [workers] calls byzantine; None: it calls none so.

        Raises:
            ValueError: its parameters do not go with n workers.
        """
        return self

    def mean(self, parts: Sequence[Compressed]) -> Compressed:
        """The robust mean of compressed vectors of one length, sparse where most of its coordinates are 0."""
        v = self.of(np.array([part.dense() for part in parts]))
        held = np.flatnonzero(v).astype(np.uint32)
        return Sparse(v.size, held, v[held]) if is_few(held.size, v.size) else Dense(v)


class OfByzantine(RobustMean):
    """A robust mean that is told f."""

    count: int | None

    def among(self, n: int, f: int | None) -> Self:
        count = f if self.count is None else self.count
        if count is None:
            raise ValueError(f"{self.name} needs count = f, how many workers may be byzantine")
        if not 0 <= 2 * count < n:
            raise ValueError(f"count = {count} should be less than half of the {n} workers, and 0 or more")
        return replace(self, count=count)


robust_means: Registry[RobustMean] = Registry("robust mean", RobustMean)
