from dataclasses import dataclass

from mpi_compress.messages.kinds.base import Compressed, Sparse, Vector, index_bits


@dataclass(frozen=True)
class WithSize(Compressed):
    """A vector that was compressed by the size of this number among those that both ends know.

    Paper bits: the vector's + ⌈log2 of how many sizes there are⌉.
    """

    number: int
    among: int  # how many sizes; known to both ends
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
        return self.vector.paper_bits(fpp, indices_counted) + index_bits(self.among)

    def is_finite(self) -> bool:
        return self.vector.is_finite()

    def sparse(self) -> Sparse | None:
        return self.vector.sparse()

    def checked(self, dim: int) -> "WithSize":
        return WithSize(self.number, self.among, self.vector.checked(dim))
