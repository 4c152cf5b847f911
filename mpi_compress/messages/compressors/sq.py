from dataclasses import dataclass
from math import isqrt

import numpy as np

from mpi_compress.core.streams import Round
from mpi_compress.kernels import select
from mpi_compress.kernels.probabilities import size_of
from mpi_compress.messages.compressors.base import Compressor, Count, compressors, count_of
from mpi_compress.messages.kinds import Compressed, SignSparse, Vector

TIE = 1e-12  # sums this close to ‖g‖, relatively, have reached it


@compressors.register("sq")
@dataclass(frozen=True)
class SQ(Compressor):
    """S+Q: ‖g‖·sign(g_j) on I_T(g), the k = T coordinates of largest magnitude (CAT eq. 3).

    Biased, and not contractive: its error can be larger than ‖g‖. Algorithms make up for it by the step, which they fold into
    the one magnitude. Coordinates that are 0 are never sent.
    """

    k: Count | None = None
    makes = SignSparse
    paper = "CAT eq. 3"

    def compress(self, v: Vector, t: Round) -> Compressed:
        return signs_at(v, select.largest(v, count_of(self.k, v.size)), size_of(v).norm)

    def check(self, dim: int) -> None:
        count_of(self.k, dim)


def signs_at(v: Vector, indices: select.Indices, magnitude: float) -> SignSparse:
    """magnitude·sign(v_j) at those increasing `indices` where v (d,) is not 0."""
    values = np.empty(indices.size)
    select.take(v, indices, values)
    if not np.all(values):
        indices, values = indices[values != 0], values[values != 0]
    return SignSparse(v.size, indices, values < 0, magnitude)


def alistarh_budget(g: Vector) -> int:
    """The smallest T with Σ_{I_T(g)} |g_j| ≥ ‖g‖ (Alistarh et al. 2017, appendix: T ≤ ⌈√d⌉); 1 where g is 0 or not finite."""
    size = size_of(g)
    if not 0 < size.peak < np.inf:
        return 1
    most = min(g.size, isqrt(g.size - 1) + 1)
    largest = np.sort(np.abs(g[select.largest(g, most)]) * size.scale)[::-1]
    reached = np.cumsum(largest) >= np.sqrt(size.squares) * (1 - TIE)
    return int(np.argmax(reached)) + 1 if reached[-1] else most
