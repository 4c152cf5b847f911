"""Signs of a common size, all of them or some at random."""

from math import sqrt

import numpy as np

from mpi_compress.core.streams import Round
from mpi_compress.kernels import quantize, select
from mpi_compress.kernels.probabilities import size_of
from mpi_compress.messages.compressors.base import Compressor, Count, OfK, compressors, count_of
from mpi_compress.messages.kinds import Compressed, SignSparse, Ternary, Vector


@compressors.register("sq")
class SQ(OfK):
    """S+Q: ‖g‖·sign(g_j) on I_T(g), the k = T coordinates of largest magnitude (CAT eq. 3).

    Biased, and not contractive: its error can be larger than ‖g‖. Algorithms make up for it by the step, which they fold into
    the one magnitude. Coordinates that are 0 are never sent.
    """

    k: Count | None = None  # k, how many coordinates are sent: a count or a share of d, "0.2%"; left out: the algorithm sets it
    makes = SignSparse
    paper = "CAT eq. 3"

    def compress(self, v: Vector, t: Round) -> Compressed:
        return SignSparse.at(v, select.largest(v, count_of(self.k, v.size)), size_of(v).norm)


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
