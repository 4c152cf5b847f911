from dataclasses import dataclass

from mpi_compress.messages.kinds.base import Compressed, Vector


@dataclass(frozen=True)
class Pair(Compressed):
    """Two vectors of one length in one message, which adds both.  Paper bits: the sum of theirs."""

    first: Compressed
    second: Compressed

    @property
    def dim(self) -> int:
        return self.first.dim

    @property
    def elements(self) -> int:
        return self.first.elements + self.second.elements

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        self.first.add_to(out, scale)
        self.second.add_to(out, scale)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return self.first.paper_bits(fpp, indices_counted) + self.second.paper_bits(fpp, indices_counted)

    def is_finite(self) -> bool:
        return self.first.is_finite() and self.second.is_finite()

    def checked(self, dim: int) -> "Pair":
        return Pair(self.first.checked(dim), self.second.checked(dim))
