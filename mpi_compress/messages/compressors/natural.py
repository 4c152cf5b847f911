from collections.abc import Sequence
from typing import Annotated

import numpy as np

from mpi_compress.core.fields import within
from mpi_compress.core.streams import Round
from mpi_compress.messages.compressors.base import Sized, compressors
from mpi_compress.messages.formats import MOST
from mpi_compress.messages.kinds import Compressed, Known, Powers, Vector
from mpi_compress.messages.kinds.powers import EXPONENT_BITS, MOST_FRACTION

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
