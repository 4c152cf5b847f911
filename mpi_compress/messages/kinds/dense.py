from dataclasses import dataclass

from mpi_compress.core import arrays
from mpi_compress.kernels import vectors as kernels
from mpi_compress.messages.kinds.base import Compressed, Vector


@dataclass(frozen=True, eq=False)
class Dense(Compressed):
    """All coordinates.  Paper bits: d·FPP."""

    values: Vector  # (d,)

    @property
    def dim(self) -> int:
        return self.values.size

    @property
    def elements(self) -> int:
        return self.values.size

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        kernels.dense_add(self.values, scale, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return self.values.size * fpp

    def is_finite(self) -> bool:
        return bool(kernels.all_finite(self.values))

    def checked(self, dim: int) -> "Dense":
        return Dense(arrays.floats(self.values, (dim,), "values"))
