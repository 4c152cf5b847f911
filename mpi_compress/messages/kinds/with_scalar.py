from dataclasses import dataclass
from math import isfinite

from mpi_compress.messages.kinds.accompanied import Accompanied
from mpi_compress.messages.kinds.base import Compressed


@dataclass(frozen=True)
class WithScalar(Accompanied):
    """A number beside a vector, in one message.  Paper bits: the vector's + FPP."""

    scalar: float
    vector: Compressed

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return self.vector.paper_bits(fpp, indices_counted) + fpp

    def is_finite(self) -> bool:
        return isfinite(self.scalar) and super().is_finite()

    def checked(self, dim: int) -> "WithScalar":
        return WithScalar(self.scalar, self.vector.checked(dim))
