"""Whole multiples of a scale, and powers of two."""

from collections.abc import Sequence
from dataclasses import field
from math import inf, isfinite, nextafter, sqrt
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.fields import AtLeastOne, Positive, within
from mpi_compress.core.streams import Round
from mpi_compress.kernels import quantize
from mpi_compress.kernels.probabilities import size_of
from mpi_compress.messages.compressors.among_workers import SharedOut
from mpi_compress.messages.compressors.base import Compressor, Levels32, Sized, compressors
from mpi_compress.messages.compressors.signs import scaled_norm
from mpi_compress.messages.formats import MOST
from mpi_compress.messages.kinds import Compressed, Dithered, Known, Levels, Powers, Vector
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

    def compress(self, v: Vector, t: Round) -> Compressed:
        bucket = self._bucket(v.size)
        norms = self._norms(v, bucket)
        with np.errstate(invalid="ignore", over="ignore"):
            scales = norms / self.levels
            scales = np.where(scales * self.levels < norms, np.nextafter(scales, np.inf), scales)  # no level above s
        out = np.empty(v.size, dtype=np.int8 if self.levels < 128 else np.int32)
        return Levels(quantize.round_at_random(v, scales, bucket, self.levels, out, t.rng), scales, bucket)

    def _norms(self, v: Vector, bucket: int) -> Vector:
        if bucket == v.size:  # the usual case, in vector registers
            size = size_of(v)
            return np.array([size.norm if self.norm == "l2" else size.peak])
        norms = np.empty(-(-v.size // bucket))
        quantize.bucket_sizes(np.ascontiguousarray(v, dtype=np.float64), bucket, self.norm == "l2", norms)
        return norms

    def _bucket(self, dim: int) -> int:
        return min(self.bucket or dim, dim)

    def known(self, dim: int) -> Known:
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
class CorrelatedDithering(Dithering, SharedOut):
    """Dithering by n workers that share the dither: s·v_j/‖v‖_p to the integer above where its part after the point is above U_i.

    U_i = (π_i + u_i)/n, π_i the place of worker i in an order of the workers that all draw alike for each coordinate, u_i its own,
    uniform on [0, 1). Each U_i is uniform: unbiased with the ω of dithering. One U_i lies in each nth of [0, 1), so errors never
    correlate positively, and the mean of n equal vectors is wrong by less than ‖v‖_p/(sn) in each coordinate.
    """

    n: AtLeastOne | None = None  # the number of workers; left out: as the run has them
    paper = "Suresh, Sun, Ro, Yu (2022); with MARINA: Panferov et al. (2025)"

    def check(self, dim: int) -> None:
        Dithering.check(self, dim)
        SharedOut.check(self, dim)

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

    def compress(self, v: Vector, t: Round) -> Compressed:
        """Raises OverflowError where a coordinate goes up to 2^1024."""
        if not np.all(np.isfinite(v)):
            return Powers(np.zeros(v.size, dtype=np.int32), 0, self.fraction, finite=False)
        half, exponent = np.frexp(np.abs(v, dtype=np.float64))  # v_j = half·2^exponent, 1/2 ≤ half < 1
        digits = np.ldexp(2 * half - 1, self.fraction)
        below = np.floor(digits)
        up = t.rng.random(v.size) < digits - below
        place = ((exponent.astype(np.int64) - 1) << self.fraction) + below.astype(np.int64) + up
        sent = v != 0
        if not sent.any():
            return Powers(np.zeros(v.size, dtype=np.int32), 0, self.fraction)
        least, most = (int(end(place[sent])) >> self.fraction for end in (np.min, np.max))
        if most > MOST:
            raise OverflowError(f"a value of magnitude {np.max(np.abs(v)):g} rounds to 2^1024, beyond floats")
        sizes = np.where(sent, place - (least << self.fraction) + 1, 0)
        return Powers(np.where(v < 0, -sizes, sizes).astype(np.int32), least, self.fraction)

    def known(self, dim: int) -> Known:
        return {"fraction": self.fraction}

    def sizes(self, dim: int) -> Sequence[int]:
        return range(MOST_FRACTION + 1)

    def payload(self, dim: int, fpp: int) -> float:
        return dim * (1 + self.fraction + EXPONENT_BITS[fpp])

    def omega(self, dim: int) -> float:
        h = 2.0**-self.fraction
        return h**2 / (4 * (1 + h))
