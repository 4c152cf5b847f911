from abc import abstractmethod

from mpi_compress.kernels import vectors as kernels
from mpi_compress.messages.kinds.base import Compressed, Indices, Sparse, Vector


class SharedSeed(Compressed):
    """Values at coordinates that sender and receiver draw from one seed.  Paper bits: T·FPP."""

    values: Vector  # (T,)

    @property
    @abstractmethod
    def indices(self) -> Indices:
        """(T,) increasing."""

    @property
    def elements(self) -> int:
        return self.values.size

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        kernels.scatter_add(self.indices, self.values, scale, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return self.values.size * fpp

    def is_finite(self) -> bool:
        return bool(kernels.all_finite(self.values))

    def sparse(self) -> Sparse:
        return Sparse(self.dim, self.indices, self.values)
