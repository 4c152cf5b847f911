from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core import arrays
from mpi_compress.kernels import vectors as kernels
from mpi_compress.messages.kinds.base import Compressed, Vector


@dataclass(frozen=True, eq=False)
class Dithered(Compressed):
    """v_j = scale·levels[j], |levels[j]| ≤ most.  Paper bits: FPP + d(1 + ⌈log2(most + 1)⌉): a sign and one of 0 … most each."""

    levels: NDArray[np.signedinteger]  # (d,), int8 or int32
    scale: float
    most: int  # known to both ends

    @property
    def dim(self) -> int:
        return self.levels.size

    @property
    def elements(self) -> int:
        return int(np.count_nonzero(self.levels))

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        kernels.levels_add(self.levels, np.array([self.scale]), self.levels.size, scale, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return fpp + self.levels.size * (1 + self.most.bit_length())

    def is_finite(self) -> bool:
        return isfinite(self.scale)

    def checked(self, dim: int) -> "Dithered":
        levels = arrays.whole(self.levels, (dim,), "levels", -self.most, self.most)
        short = levels.dtype == np.int8
        return Dithered(levels if short else levels.astype(np.int32, copy=False), arrays.number(self.scale, "scale"), self.most)
