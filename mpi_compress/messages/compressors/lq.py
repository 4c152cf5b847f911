from math import inf, log2, sqrt
from typing import Annotated

import numpy as np

from mpi_compress.core.fields import within
from mpi_compress.core.streams import Round
from mpi_compress.kernels import probabilities
from mpi_compress.messages.compressors.base import Compressor, compressors
from mpi_compress.messages.kinds import Compressed, SignSparse, Vector


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
