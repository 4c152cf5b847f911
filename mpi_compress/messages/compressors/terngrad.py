from math import sqrt

import numpy as np

from mpi_compress.core.streams import Round
from mpi_compress.kernels import quantize
from mpi_compress.kernels.probabilities import size_of
from mpi_compress.messages.compressors.base import Compressor, compressors
from mpi_compress.messages.kinds import Compressed, Ternary, Vector


@compressors.register("terngrad")
class TernGrad(Compressor):
    """M·sign(v_j)·Bernoulli(|v_j|/M), M = max |v_j| (TernGrad eq. 2 to 4).

    Unbiased with ω = (√d − 1)/2: M‖v‖₁ ≤ ‖v‖²·(√d + 1)/2, attained by one coordinate 1 and d − 1 of 1/(√d + 1).
    """

    makes = Ternary
    codec = "ternary"
    paper = "TernGrad (Wen et al. 2017) §3"

    def compress(self, v: Vector, t: Round) -> Compressed:
        peak = size_of(v).peak
        signs = np.empty(v.size, dtype=np.int8)
        return Ternary(quantize.round_at_random(v, np.array([peak]), v.size, 1, signs, t.rng), peak)

    def omega(self, dim: int) -> float:
        return (sqrt(dim) - 1) / 2
