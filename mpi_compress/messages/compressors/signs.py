"""Signs of a common size: of all coordinates, of those of a block, or of some at random."""

from collections.abc import Sequence
from math import inf, log2, sqrt
from typing import Annotated

import numpy as np

from mpi_compress.core.fields import AtLeastOne, within
from mpi_compress.core.streams import Round
from mpi_compress.kernels import probabilities, quantize, select
from mpi_compress.kernels.probabilities import size_of
from mpi_compress.messages.compressors.base import Compressor, Count, OfK, Sized, compressors, count_of
from mpi_compress.messages.kinds import BlockSigns, Compressed, Known, SignSparse, Ternary, Vector


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


@compressors.register("lq")
class LQ(Compressor):
    """‖g‖_q·sign(g_j)·Bernoulli(|g_j|/‖g‖_q) (ℓ_q-quantisation, Wang et al. 2018; CAT after eq. 4).

    q = 2 is QSGD with one level, q = inf TernGrad. Unbiased with ω = d^max(1/q, 1/2) − 1, and (√d − 1)/2 for q = inf: the variance
    is ‖g‖_q‖g‖₁ − ‖g‖².
    """

    q: Annotated[float, within("(0, inf]")] = 2.0  # q of the norm ‖g‖_q: above 0, or inf
    makes = SignSparse
    paper = "CAT eq. 4"

    def compress(self, v: Vector, t: Round) -> Compressed:
        size = probabilities.size_of(v)
        indices, _, m = probabilities.draw(v, size, scaled_norm(v, size, self.q), t.rng)
        return SignSparse(v.size, indices, v[indices] < 0, m if size.peak < inf else size.peak)

    def check(self, dim: int) -> None:
        if log2(dim) >= 1024 * self.q:
            raise ValueError(f"q = {self.q:g} is too small for d = {dim}: ‖g‖_q can be d^(1/q)·|g_j|, which floats cannot hold")

    def omega(self, dim: int) -> float:
        return (sqrt(dim) - 1) / 2 if self.q == inf else dim ** max(1 / self.q, 0.5) - 1


def scaled_norm(v: Vector, size: probabilities.VectorSize, q: float) -> float:
    """‖v‖_q of v (d,), times the scale of `size`."""
    peak = size.peak * size.scale
    if not 0 < peak < inf or q == inf:
        return peak
    if q == 1:
        return size.sum
    if q == 2:
        return max(sqrt(size.squares), peak)
    shares = np.abs(v[v != 0]) * size.scale / peak
    return peak * float(np.sum(shares**q)) ** (1 / q)


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
