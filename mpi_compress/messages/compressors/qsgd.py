from math import sqrt
from typing import Literal

import numpy as np

from mpi_compress.core.fields import AtLeastOne
from mpi_compress.core.streams import Round
from mpi_compress.kernels import quantize
from mpi_compress.kernels.probabilities import size_of
from mpi_compress.messages.compressors.base import Compressor, Levels32, compressors
from mpi_compress.messages.kinds import Compressed, Known, Levels, Vector


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
