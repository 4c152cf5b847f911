from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core import arrays
from mpi_compress.kernels import elias
from mpi_compress.kernels import vectors as kernels
from mpi_compress.messages.kinds.base import Compressed, Vector

_LARGEST_LEVEL = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Levels(Compressed):
    """v_j = scales[⌊j / bucket⌋]·levels[j]: integers on a grid for each bucket of coordinates (QSGD sends ‖v‖/s as scale).

    Paper bits: 32 for each scale + the Elias code of the levels, the shorter of the two of QSGD's paper (Alistarh et al. 2017,
    §3.2 and its appendix): omega code of the gap to each nonzero level, its sign, omega code of its size; or for every
    coordinate its sign and the omega code of its size + 1.
    """

    levels: NDArray[np.signedinteger]  # (d,), int8 or int32
    scales: Vector  # (⌈d / bucket⌉,)
    bucket: int  # coordinates that share a scale

    @property
    def dim(self) -> int:
        return self.levels.size

    @property
    def elements(self) -> int:
        return int(np.count_nonzero(self.levels))

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        kernels.levels_add(self.levels, self.scales, self.bucket, scale, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        at, sparse, dense = elias.levels_lengths(self.levels, True)
        return 32 * self.scales.size + min(sparse + at.size, dense + self.levels.size)  # dense: every level has a sign, 0 too

    def is_finite(self) -> bool:
        return bool(kernels.all_finite(self.scales))

    def checked(self, dim: int) -> "Levels":
        if not self.bucket >= 1:
            raise ValueError(f"bucket = {self.bucket} must be at least 1")
        levels = arrays.whole(self.levels, (dim,), "levels", -_LARGEST_LEVEL, _LARGEST_LEVEL)
        short = levels.dtype == np.int8
        scales = arrays.floats(self.scales, (-(-dim // self.bucket),), "scales")
        return Levels(levels if short else levels.astype(np.int32, copy=False), scales, self.bucket)
