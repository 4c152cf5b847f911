from dataclasses import dataclass
from math import isfinite

from mpi_compress.messages.kinds.base import Compressed, Vector


@dataclass(frozen=True)
class WithScalar(Compressed):
    """A number beside a vector, in one message.  Paper bits: the vector's + FPP."""

    scalar: float
    vector: Compressed

    @property
    def dim(self) -> int:
        return self.vector.dim

    @property
    def elements(self) -> int:
        return self.vector.elements

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        self.vector.add_to(out, scale)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return self.vector.paper_bits(fpp, indices_counted) + fpp

    def is_finite(self) -> bool:
        return isfinite(self.scalar) and self.vector.is_finite()

    def checked(self, dim: int) -> "WithScalar":
        return WithScalar(self.scalar, self.vector.checked(dim))
