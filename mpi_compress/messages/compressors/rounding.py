import numpy as np

from mpi_compress.core.fields import Positive
from mpi_compress.core.streams import Round
from mpi_compress.kernels import quantize
from mpi_compress.kernels.probabilities import size_of
from mpi_compress.messages.compressors.base import Compressor, compressors
from mpi_compress.messages.kinds import Compressed, Known, Levels, Vector


@compressors.register("rounding")
class Rounding(Compressor):
    """Each coordinate to the grid step·{…, −1, 0, 1, …}: the nearest point, or one of its two neighbours at random (HT §5).

    Absolute with v² = d·step²/4, both ways (at random: in the mean, and unbiased).
    """

    step: Positive  # the distance between two points of the grid
    stochastic: bool = False  # true: to one of the two neighbours at random, which is unbiased; false: to the nearest point
    makes = Levels
    codec = "elias-omega"
    paper = "HT §5"

    def compress(self, v: Vector, t: Round) -> Compressed:
        """Raises OverflowError where a coordinate is 2³¹ steps or more."""
        out = np.empty(v.size, dtype=np.int32)
        peak = size_of(v).peak
        if not peak < np.inf:
            out[:] = 1
            return Levels(out, np.array([np.nan]), v.size)
        if peak >= (2**31 - 1) * self.step:
            raise OverflowError(f"a value of magnitude {peak:g} is 2³¹ steps of {self.step:g} or more; use a larger step")
        scales = np.array([self.step])
        if self.stochastic:
            quantize.round_at_random(v, scales, v.size, 2**31 - 1, out, t.rng)
        else:
            quantize.round_to_nearest(np.ascontiguousarray(v, dtype=np.float64), self.step, out)
        return Levels(out, scales, v.size)

    def known(self, dim: int) -> Known:
        return {"bucket": dim}

    def variance(self, dim: int) -> float:
        return dim * self.step**2 / 4

    def unbiased(self, dim: int) -> bool:
        return self.stochastic
