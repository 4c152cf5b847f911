from dataclasses import dataclass

from mpi_compress.messages.kinds.accompanied import Accompanied
from mpi_compress.messages.kinds.base import Compressed, Sparse, index_bits


@dataclass(frozen=True)
class WithSize(Accompanied):
    """A vector that was compressed by the size of this number among those that both ends know.

    Paper bits: the vector's + ⌈log2 of how many sizes there are⌉.
    """

    number: int
    among: int  # how many sizes; known to both ends
    vector: Compressed

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return self.vector.paper_bits(fpp, indices_counted) + index_bits(self.among)

    def sparse(self) -> Sparse | None:
        return self.vector.sparse()

    def checked(self, dim: int) -> "WithSize":
        return WithSize(self.number, self.among, self.vector.checked(dim))
