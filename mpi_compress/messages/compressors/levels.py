"""Whole multiples of a scale, and powers of two."""

from collections.abc import Sequence
from dataclasses import field
from math import inf, nan, sqrt
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.fields import AtLeastOne, Positive, within
from mpi_compress.core.streams import Rounds, keyed
from mpi_compress.kernels import quantize
from mpi_compress.kernels.powers import round_to_powers
from mpi_compress.kernels.probabilities import sizes_of
from mpi_compress.messages.compressors.among_workers import SharedOut
from mpi_compress.messages.compressors.base import Compressor, Levels32, Sized, compressors, evaluated
from mpi_compress.messages.compressors.signs import scaled_norms
from mpi_compress.messages.formats import MOST
from mpi_compress.messages.kinds import Compressed, Dithered, Levels, Powers, SideInfo, Vector
from mpi_compress.messages.kinds.powers import EXPONENT_BITS, MOST_FRACTION


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

    def compress_rows(self, V: Vector, t: Rounds) -> Compressed:
        """Raises OverflowError where a coordinate is 2³¹ steps or more."""
        d, peaks = V.shape[1], sizes_of(V).peak
        finite, out = peaks < inf, np.ones(V.shape, dtype=np.int32)
        if (far := finite & (peaks >= (2**31 - 1) * self.step)).any():
            raise OverflowError(f"a value of magnitude {peaks[far][0]:g} is 2³¹ steps of {self.step:g} or more; use a larger step")
        scales = np.where(finite, self.step, nan)[:, None]
        if self.stochastic:
            quantize.round_at_random(V, scales, d, 2**31 - 1, out, t, finite)
        else:
            quantize.round_to_nearest(V, self.step, finite, out)
        return Levels(out, scales, d)

    def known(self, dim: int) -> SideInfo:
        return {"bucket": dim}

    def variance(self, dim: int) -> float:
        return dim * self.step**2 / 4

    def unbiased(self, dim: int) -> bool:
        return self.stochastic


@compressors.register("qsgd")
class QSGD(Compressor):
    """‖v‖·sign(v_j)·ℓ_j/s, where ℓ_j is one of the two integers next to s|v_j|/‖v‖, s·|v_j|/‖v‖ in the mean (QSGD §3.1).

    `norm` is the 2-norm or the largest magnitude, of each `bucket` of b coordinates (one of all d, if not given). Unbiased, with
    f(1 − f) ≤ min(1/4, f) for the part f of a level: 2-norm: ω = min(b/(4s²), √b/s), a fourth in its first term of QSGD Lemma
    3.1; largest magnitude: ω = min((b − 1)/(4s²), √(b − 1)/(2s)), where the largest coordinate itself is exact.
    """

    levels: Levels32  # s, the number of levels: magnitudes become multiples of ‖v‖/s
    norm: Literal["l2", "max"] = "l2"  # the 2-norm, or the largest magnitude
    bucket: AtLeastOne | None = None  # b, how many coordinates share a norm; left out: all d
    makes = Levels
    codec = "elias-omega"
    paper = "QSGD (Alistarh et al. 2017) §3"

    def compress_rows(self, V: Vector, t: Rounds) -> Compressed:
        bucket = self._bucket(V.shape[1])
        norms = self._norms(V, bucket)
        with np.errstate(invalid="ignore", over="ignore"):
            scales = norms / self.levels
            scales = np.where(scales * self.levels < norms, np.nextafter(scales, np.inf), scales)  # no level above s
        out = np.empty(V.shape, dtype=np.int8 if self.levels < 128 else np.int32)
        return Levels(quantize.round_at_random(V, scales, bucket, self.levels, out, t), scales, bucket)

    def _norms(self, V: Vector, bucket: int) -> Vector:
        """The norms of the buckets of each row (m, ·)."""
        sizes = sizes_of(V, bucket)
        return (sizes.norm if self.norm == "l2" else sizes.peak).reshape(len(V), -1)

    def _bucket(self, dim: int) -> int:
        return min(self.bucket or dim, dim)

    def known(self, dim: int) -> SideInfo:
        return {"bucket": self._bucket(dim)}

    def omega(self, dim: int) -> float:
        b, s = self._bucket(dim), self.levels
        if self.norm == "l2":
            return min(b / (4 * s**2), sqrt(b) / s)
        return min((b - 1) / (4 * s**2), sqrt(b - 1) / (2 * s))


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

    def compress_rows(self, V: Vector, t: Rounds) -> Compressed:
        sizes, s = sizes_of(V), self._levels
        with np.errstate(over="ignore"):
            scales = np.where(sizes.peak < inf, scaled_norms(V, sizes, self.p) / s / sizes.scale, sizes.peak)
            while (low := (scales < inf) & (scales * s < sizes.peak)).any():  # no level above s
                scales[low] = np.nextafter(scales[low], inf)
        out: NDArray = np.empty(V.shape, dtype=np.int8 if s < 128 else np.int32)
        self.round(V, scales[:, None], t, out)
        return Dithered(out, scales, s)

    def round(self, V: Vector, scales: Vector, t: Rounds, out: NDArray) -> None:
        """out_ij (m, d): the level of v_ij, a multiple of its row's scale of `scales` (m, 1); 1 where that is not finite."""
        quantize.round_at_random(V, scales, V.shape[1], self._levels, out, t)

    @property
    def _levels(self) -> int:
        return evaluated(self.levels, "levels = s")

    def sizes(self, dim: int) -> Sequence[int]:
        """1, 3, 7, …: all that a field of 1, 2, 3, … bits holds."""
        return [2**bits - 1 for bits in range(1, 17)]

    def payload(self, dim: int, fpp: int) -> float:
        return fpp + dim * (1 + self._levels.bit_length())

    def known(self, dim: int) -> SideInfo:
        return {"most": self._levels}

    def omega(self, dim: int) -> float | None:
        e, s = max(0.0, 1 / self.p - 0.5), self._levels
        return min(dim ** (1 + 2 * e) / (4 * s**2), dim ** (0.5 + e) / s)


@compressors.register("correlated-dithering")
class CorrelatedDithering(Dithering, SharedOut):
    """Dithering by n workers that share the dither: s·v_j/‖v‖_p to the integer above where its part after the point is above U_i.

    U_i = (π_i + u_i)/n, π_i the place of worker i in an order of the workers that all draw alike for each coordinate, u_i its own,
    uniform on [0, 1). Each U_i is uniform: unbiased with the ω of dithering. One U_i lies in each nth of [0, 1), so errors never
    correlate positively, and the mean of n equal vectors is wrong by less than ‖v‖_p/(sn) in each coordinate.
    """

    n: AtLeastOne | None = None  # the number of workers; left out: as the run has them
    paper = "Suresh, Sun, Ro, Yu (2022); with MARINA: Panferov et al. (2025)"

    def round(self, V: Vector, scales: Vector, t: Rounds, out: NDArray) -> None:
        n, common = self.workers(t), keyed(t.common_seed)
        m, d = V.shape
        places = common.permutation(n)[t.who]  # of two workers: any two, all equally likely
        places = (places[:, None] + common.integers(n, size=d)) % n
        y = quotients(V, scales)
        below = np.floor(y)
        dither = (places + t.random(np.full(m, d)).reshape(m, d)) / n
        out[:] = np.clip(below + (dither < y - below), -self._levels, self._levels)


@compressors.register("uniform")
class Uniform(Dithering):
    """Each coordinate to the nearest of the 2s + 1 multiples of max|v_j|/s, without chance.

    Contractive with δ = 4s²/(4s² + d − 1): the largest coordinate is exact (above 2⁻¹⁰²²), and no other is wrong by more than it
    is, or than half a level. LAQ's own levels leave 0 out.
    """

    p: float = field(default=inf, init=False)
    paper = "LAQ (Sun, Chen, Giannakis, Yang 2019)"

    def round(self, V: Vector, scales: Vector, t: Rounds, out: NDArray) -> None:
        out[:] = np.clip(np.rint(quotients(V, scales)), -self._levels, self._levels)

    def omega(self, dim: int) -> float | None:
        return None if dim > 1 else 0.0

    def delta(self, dim: int) -> float:
        return 4 * self._levels**2 / (4 * self._levels**2 + dim - 1)


def quotients(V: Vector, scales: Vector) -> Vector:
    """v/scale of each row (m, d), scales (m, 1); 1 everywhere in it if the scale is not finite, and 0 if it is 0."""
    usual = (scales > 0) & (scales < inf)
    return np.where(usual, V / np.where(usual, scales, 1.0), scales != 0)


Digits = Annotated[int, within(f"[0, {MOST_FRACTION}]")]


@compressors.register("natural")
class Natural(Sized):
    """Each coordinate to one of the two powers of two next to it, at random, v_j in the mean (Natural compression, §2).

    With `fraction` = j the first j binary digits after the point are kept too: t = 2^e (1 + f) goes up to the next multiple of
    2^(e − j) or down. Unbiased with ω = h²/(4(1 + h)), h = 2^−j, which t = 2^e (1 + h/(2 + h)) attains: 1/8 for j = 0.
    """

    fraction: Digits = 0  # j, binary digits after the point that are kept, from 0 to 16; 0: powers of two alone
    size_field = "fraction"
    makes = Powers
    codec = "packed"
    paper = "Natural compression (Horváth et al. 2019)"

    def compress_rows(self, V: Vector, t: Rounds) -> Compressed:
        """Raises OverflowError where a coordinate goes up to 2^1024."""
        finite: Any = np.isfinite(V).all(axis=1)
        integers = np.zeros(V.shape, dtype=np.int32)
        words = (t if finite.all() else t[finite]).words(V.shape[1])
        least, most = round_to_powers(V, finite, self.fraction, words, integers)
        if (beyond := most > MOST).any():
            raise OverflowError(f"a value of magnitude {np.abs(V[beyond][0]).max():g} rounds to 2^1024, beyond floats")
        return Powers(integers, least, self.fraction, finite)

    def known(self, dim: int) -> SideInfo:
        return {"fraction": self.fraction}

    def sizes(self, dim: int) -> Sequence[int]:
        return range(MOST_FRACTION + 1)

    def payload(self, dim: int, fpp: int) -> float:
        return dim * (1 + self.fraction + EXPONENT_BITS[fpp])

    def omega(self, dim: int) -> float:
        h = 2.0**-self.fraction
        return h**2 / (4 * (1 + h))
