from collections.abc import Sequence
from math import inf, isfinite, nextafter
from typing import Annotated

import numpy as np

from mpi_compress.core.fields import within
from mpi_compress.core.streams import Round
from mpi_compress.kernels import quantize
from mpi_compress.kernels.probabilities import size_of
from mpi_compress.messages.compressors.base import Levels32, Sized, compressors
from mpi_compress.messages.compressors.lq import scaled_norm
from mpi_compress.messages.kinds import Compressed, Dithered, Known, Vector


@compressors.register("dithering")
class Dithering(Sized):
    """‖v‖_p·sign(v_j)·ℓ_j/s, where ℓ_j is one of the two integers next to s|v_j|/‖v‖_p, at random, that number in the mean.

    Unbiased. A coordinate's variance is f(1 − f)(‖v‖_p/s)², f(1 − f) ≤ min(1/4, f), and ‖v‖_p ≤ d^e‖v‖ with
    e = max(0, 1/p − 1/2): ω = min(d^(1+2e)/(4s²), d^(1/2+e)/s). p = 2 is `qsgd`, whose messages have codes of varying length.
    """

    levels: Levels32 | None = None  # s, the number of levels: magnitudes are multiples of ‖v‖_p/s; left out: the algorithm sets it
    p: Annotated[float, within("[1, inf]")] = 2.0  # p of the norm ‖v‖_p: from 1 on, or inf
    size_field = "levels"
    makes = Dithered
    codec = "packed"
    paper = "random dithering (Horváth et al. 2019, §3; p = 2: QSGD)"

    def compress(self, v: Vector, t: Round) -> Compressed:
        size, s = size_of(v), self._levels
        scale = scaled_norm(v, size, self.p) / s / size.scale if size.peak < inf else size.peak
        while isfinite(scale) and scale * s < size.peak:  # no level above s
            scale = nextafter(scale, inf)
        out = np.empty(v.size, dtype=np.int8 if s < 128 else np.int32)
        return Dithered(quantize.round_at_random(v, np.array([scale]), v.size, s, out, t.rng), scale, s)

    @property
    def _levels(self) -> int:
        if self.levels is None:
            raise ValueError("needs levels = s (only some algorithms set it)")
        return self.levels

    def check(self, dim: int) -> None:
        self._levels  # noqa: B018  raises where it is not settled

    def sizes(self, dim: int) -> Sequence[int]:
        """1, 3, 7, …: all that a field of 1, 2, 3, … bits holds."""
        return [2**bits - 1 for bits in range(1, 17)]

    def payload(self, dim: int, fpp: int) -> float:
        return fpp + dim * (1 + self._levels.bit_length())

    def known(self, dim: int) -> Known:
        return {"most": self._levels}

    def omega(self, dim: int) -> float:
        e, s = max(0.0, 1 / self.p - 0.5), self._levels
        return min(dim ** (1 + 2 * e) / (4 * s**2), dim ** (0.5 + e) / s)
