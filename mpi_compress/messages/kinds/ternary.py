from dataclasses import dataclass
from math import isfinite, log2

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core import arrays
from mpi_compress.kernels import vectors as kernels
from mpi_compress.messages.kinds.base import Compressed, Vector


@dataclass(frozen=True, eq=False)
class Ternary(Compressed):
    """v_j = magnitude·signs[j], signs −1, 0 or 1.  Paper bits: FPP + d·log2 3 (TernGrad, Wen et al. 2017, §3)."""

    signs: NDArray[np.int8]  # (d,)
    magnitude: float

    @property
    def dim(self) -> int:
        return self.signs.size

    @property
    def elements(self) -> int:
        return int(np.count_nonzero(self.signs))

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        kernels.dense_add(self.signs, scale * self.magnitude, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return fpp + self.signs.size * log2(3)

    def is_finite(self) -> bool:
        return isfinite(self.magnitude)

    def checked(self, dim: int) -> "Ternary":
        signs = arrays.whole(self.signs, (dim,), "signs", -1, 1)
        return Ternary(signs.astype(np.int8, copy=False), arrays.number(self.magnitude, "magnitude"))
