from dataclasses import dataclass

import numpy as np

from mpi_compress.core import arrays
from mpi_compress.kernels import vectors as kernels
from mpi_compress.messages.kinds.base import Compressed, Flags, Vector


@dataclass(frozen=True, eq=False)
class BlockSigns(Compressed):
    """v_j = ±scales[⌊j / block⌋].  Paper bits: d + FPP for each block (Zheng, Huang, Kwok 2019, §4)."""

    negative: Flags  # (d,) True where the value is −scale
    scales: Vector  # (⌈d / block⌉,)
    block: int  # coordinates that share a scale; known to both ends

    @property
    def dim(self) -> int:
        return self.negative.size

    @property
    def elements(self) -> int:
        return self.negative.size

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        kernels.levels_add(1 - 2 * self.negative.view(np.int8), self.scales, self.block, scale, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return self.negative.size + fpp * self.scales.size

    def is_finite(self) -> bool:
        return bool(kernels.all_finite(self.scales))

    def checked(self, dim: int) -> "BlockSigns":
        if not self.block >= 1:
            raise ValueError(f"block = {self.block} must be at least 1")
        scales = arrays.floats(self.scales, (-(-dim // self.block),), "scales")
        return BlockSigns(arrays.flags(self.negative, (dim,), "negative"), scales, self.block)
