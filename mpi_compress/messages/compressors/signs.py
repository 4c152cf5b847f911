"""Signs of a common size: of all coordinates, of those of a block, or of some at random."""

from collections.abc import Sequence
from math import inf, log2, sqrt
from typing import Annotated

import numpy as np

from mpi_compress.core.fields import AtLeastOne, within
from mpi_compress.core.streams import Rounds
from mpi_compress.kernels import quantize, select
from mpi_compress.kernels.probabilities import Sizes, draw, sizes_of
from mpi_compress.messages.compressors.base import Compressor, Count, OfK, Sized, compressors, count_of
from mpi_compress.messages.kinds import BlockSigns, Compressed, SideInfo, SignSparse, Sparse, Ternary, Vector


@compressors.register("sq")
class SQ(OfK):
    """S+Q: ‖g‖·sign(g_j) on I_T(g), the k = T coordinates of largest magnitude (CAT eq. 3).

    Biased, and not contractive: its error can be larger than ‖g‖. Algorithms make up for it by the step, which they fold into
    the one magnitude. Coordinates that are 0 are never sent.
    """

    k: Count | None = None  # k, how many coordinates are sent: a count or a share of d, "0.2%"; left out: the algorithm sets it
    makes = SignSparse
    paper = "CAT eq. 3"

    def compress_rows(self, V: Vector, t: Rounds) -> Compressed:
        d = V.shape[1]
        return SignSparse.of(Sparse(d, *select.largest(V, count_of(self.k, d))), sizes_of(V).norm)


@compressors.register("terngrad")
class TernGrad(Compressor):
    """M·sign(v_j)·Bernoulli(|v_j|/M), M = max |v_j| (TernGrad eq. 2 to 4).

    Unbiased with ω = (√d − 1)/2: M‖v‖₁ ≤ ‖v‖²·(√d + 1)/2, attained by one coordinate 1 and d − 1 of 1/(√d + 1).
    """

    makes = Ternary
    codec = "ternary"
    paper = "TernGrad (Wen et al. 2017) §3"

    def compress_rows(self, V: Vector, t: Rounds) -> Compressed:
        peaks = sizes_of(V).peak
        signs = np.empty(V.shape, dtype=np.int8)
        return Ternary(quantize.round_at_random(V, peaks[:, None], V.shape[1], 1, signs, t), peaks)

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

    def compress_rows(self, V: Vector, t: Rounds) -> Compressed:
        sizes = sizes_of(V)
        drawn = draw(V, sizes, scaled_norms(V, sizes, self.q), t)
        magnitudes = np.where(sizes.peak < inf, drawn.level, sizes.peak)
        return SignSparse(V.shape[1], drawn.indices, drawn.values < 0, magnitudes, drawn.ends)

    def check(self, dim: int) -> None:
        if log2(dim) >= 1024 * self.q:
            raise ValueError(f"q = {self.q:g} is too small for d = {dim}: ‖g‖_q can be d^(1/q)·|g_j|, which floats cannot hold")

    def omega(self, dim: int) -> float:
        return (sqrt(dim) - 1) / 2 if self.q == inf else dim ** max(1 / self.q, 0.5) - 1


def scaled_norms(V: Vector, sizes: Sizes, q: float) -> Vector:
    """‖v‖_q of each row v of V (m, d), times its scale of `sizes`."""
    peaks = sizes.peak * sizes.scale
    if q == inf:
        return peaks
    usual = (peaks > 0) & (peaks < inf)
    if q == 1:
        return np.where(usual, sizes.sum, peaks)
    if q == 2:
        return np.where(usual, np.fmax(np.sqrt(sizes.squares), peaks), peaks)
    norms = peaks.copy()
    for i in np.flatnonzero(usual):
        v = V[i]
        shares = np.abs(v[v != 0]) * sizes.scale[i] / peaks[i]
        norms[i] = peaks[i] * float(np.sum(shares**q)) ** (1 / q)
    return norms


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

    def compress_rows(self, V: Vector, t: Rounds) -> Compressed:
        d, peaks = V.shape[1], sizes_of(V).peak
        block = self._block(d)
        starts = np.arange(0, d, block)
        lifts = np.where((peaks > 0) & (peaks < inf), np.frexp(peaks)[1], 0)[:, None]  # so that no sum overflows
        with np.errstate(invalid="ignore"):
            sums = np.add.reduceat(np.ldexp(np.abs(V), -lifts), starts, axis=1)
        return BlockSigns(V < 0, np.ldexp(sums / np.diff(starts, append=d), lifts), block)

    def _block(self, dim: int) -> int:
        return min(self.block or dim, dim)

    def known(self, dim: int) -> SideInfo:
        return {"block": self._block(dim)}

    def sizes(self, dim: int) -> Sequence[int]:
        return super().sizes(dim)[::-1]

    def payload(self, dim: int, fpp: int) -> float:
        return dim + fpp * -(-dim // self._block(dim))

    def delta(self, dim: int) -> float:
        return 1 / self._block(dim)
