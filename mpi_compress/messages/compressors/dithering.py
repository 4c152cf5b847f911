from collections.abc import Sequence
from dataclasses import field
from math import inf, isfinite, nextafter
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.fields import AtLeastOne, within
from mpi_compress.core.streams import Round
from mpi_compress.kernels import quantize
from mpi_compress.kernels.probabilities import size_of
from mpi_compress.messages.compressors.base import Levels32, Sized, compressors
from mpi_compress.messages.compressors.lq import scaled_norm
from mpi_compress.messages.compressors.perm_k import Dealt
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
        out: NDArray[Any] = np.empty(v.size, dtype=np.int8 if s < 128 else np.int32)
        self.round(v, scale, t, out)
        return Dithered(out, scale, s)

    def round(self, v: Vector, scale: float, t: Round, out: NDArray[Any]) -> None:
        """out_j (d,): the level of v_j, a multiple of `scale`; 1 where that is not finite."""
        quantize.round_at_random(v, np.array([scale]), v.size, self._levels, out, t.rng)

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

    def omega(self, dim: int) -> float | None:
        e, s = max(0.0, 1 / self.p - 0.5), self._levels
        return min(dim ** (1 + 2 * e) / (4 * s**2), dim ** (0.5 + e) / s)


@compressors.register("correlated-dithering")
class CorrelatedDithering(Dithering, Dealt):
    """Dithering by n workers that share the dither: s·v_j/‖v‖_p to the integer above where its part after the point is above U_i.

    U_i = (π_i + u_i)/n, π_i the place of worker i in an order of the workers that all draw alike for each coordinate, u_i its own,
    uniform on [0, 1). Each U_i is uniform: unbiased with the ω of dithering. One U_i lies in each nth of [0, 1), so errors never
    correlate positively, and the mean of n equal vectors is wrong by less than ‖v‖_p/(sn) in each coordinate.
    """

    n: AtLeastOne | None = None  # the number of workers; left out: as the run has them
    paper = "Suresh, Sun, Ro, Yu (2022); with MARINA: Panferov et al. (2025)"

    def check(self, dim: int) -> None:
        Dithering.check(self, dim)
        Dealt.check(self, dim)

    def round(self, v: Vector, scale: float, t: Round, out: NDArray[Any]) -> None:
        n, common = self.workers(t), np.random.Generator(np.random.Philox(key=t.common_seed))
        place = (common.permutation(n)[t.who] + common.integers(n, size=v.size)) % n  # of two workers: any two, all equally likely
        y = quotients(v, scale)
        below = np.floor(y)
        out[:] = np.clip(below + ((place + t.rng.random(v.size)) / n < y - below), -self._levels, self._levels)


@compressors.register("uniform")
class Uniform(Dithering):
    """Each coordinate to the nearest of the 2s + 1 multiples of max|v_j|/s, without chance.

    Contractive with δ = 4s²/(4s² + d − 1): the largest coordinate is exact (above 2⁻¹⁰²²), and no other is wrong by more than it
    is, or than half a level. LAQ's own levels leave 0 out.
    """

    p: float = field(default=inf, init=False)
    paper = "LAQ (Sun, Chen, Giannakis, Yang 2019)"

    def round(self, v: Vector, scale: float, t: Round, out: NDArray[Any]) -> None:
        out[:] = np.clip(np.rint(quotients(v, scale)), -self._levels, self._levels)

    def omega(self, dim: int) -> float | None:
        return None if dim > 1 else 0.0

    def delta(self, dim: int) -> float:
        return 4 * self._levels**2 / (4 * self._levels**2 + dim - 1)


def quotients(v: Vector, scale: float) -> Vector:
    """v/scale (d,); 1 everywhere if the scale is not finite, and 0 if it is 0."""
    return v / scale if 0 < scale < inf else np.full(v.size, float(scale != 0))
