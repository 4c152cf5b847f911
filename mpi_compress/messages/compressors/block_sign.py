from collections.abc import Sequence

import numpy as np

from mpi_compress.core.fields import AtLeastOne
from mpi_compress.core.streams import Round
from mpi_compress.kernels.probabilities import size_of
from mpi_compress.messages.compressors.base import Sized, compressors
from mpi_compress.messages.kinds import BlockSigns, Compressed, Known, Vector


@compressors.register("block-sign")
class BlockSign(Sized):
    """(‖v_b‖₁/d_b)·sign(v_j) in each block b of d_b coordinates (Zheng, Huang, Kwok 2019, §4; one block: scaled sign).

    The mean |v_j| is the best magnitude for these signs: ‖v_b − C(v_b)‖² = ‖v_b‖² − ‖v_b‖₁²/d_b. So it is contractive with
    δ = min ‖v_b‖₁²/(d_b‖v_b‖²) ≥ 1/d_b, which a vector of one nonzero attains. A coordinate 0 is sent as + the magnitude.
    """

    block: AtLeastOne | None = None  # coordinates that share a magnitude; left out: all d
    size_field = "block"
    makes = BlockSigns
    codec = "packed"
    paper = "dist-EF-SGD (Zheng, Huang, Kwok 2019) §4"

    def compress(self, v: Vector, t: Round) -> Compressed:
        block, peak = self._block(v.size), size_of(v).peak
        starts = np.arange(0, v.size, block)
        lift = int(np.frexp(peak)[1]) if 0 < peak < np.inf else 0  # so that no sum overflows
        with np.errstate(invalid="ignore"):
            sums = np.add.reduceat(np.ldexp(np.abs(v, dtype=np.float64), -lift), starts)
        return BlockSigns(v < 0, np.ldexp(sums / np.diff(starts, append=v.size), lift), block)

    def _block(self, dim: int) -> int:
        return min(self.block or dim, dim)

    def known(self, dim: int) -> Known:
        return {"block": self._block(dim)}

    def sizes(self, dim: int) -> Sequence[int]:
        return super().sizes(dim)[::-1]

    def payload(self, dim: int, fpp: int) -> float:
        return dim + fpp * -(-dim // self._block(dim))

    def delta(self, dim: int) -> float:
        return 1 / self._block(dim)
