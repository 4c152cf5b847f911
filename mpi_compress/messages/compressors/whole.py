"""Whole vectors, as they are or clipped."""

import numpy as np

from mpi_compress.core.fields import NotNegative, Positive
from mpi_compress.core.streams import Round
from mpi_compress.kernels.probabilities import size_of
from mpi_compress.messages.compressors.base import Compressor, compressors
from mpi_compress.messages.kinds import Compressed, Dense, Vector


@compressors.register("identity")
class Identity(Compressor):
    """C(v) = v: all d coordinates."""

    makes = Dense
    codec = "dense"

    def compress(self, v: Vector, t: Round) -> Compressed:
        return Dense(v)

    def compress_again(self, c: Compressed, t: Round) -> Compressed:
        return c

    def delta(self, dim: int) -> float:
        return 1.0

    def omega(self, dim: int) -> float:
        return 0.0


@compressors.register("clip")
class Clip(Compressor):
    """min(1, τ/‖v‖) v, and noise of N(0, σ²) a coordinate: no message says more of its worker's data than τ and σ allow.

    With ef21 it is Clip21, and with noise DP-Clip21 (Khirirat, Gorbunov, Horváth, Islamov, Karray, Richtárik 2023); with sgd it is
    clipped SGD of whole minibatches. It saves no bits, and is no contraction for all v: of ‖v‖ > τ it leaves (1 − τ/‖v‖)‖v‖.
    """

    threshold: Positive  # τ, the longest vector that is sent as it is
    noise: NotNegative = 0.0  # σ, the standard deviation of the noise of a coordinate
    makes = Dense
    codec = "dense"
    paper = "Clip21 (2023), Algorithm 1"

    def compress(self, v: Vector, t: Round) -> Compressed:
        norm = size_of(v).norm
        with np.errstate(invalid="ignore"):
            clipped = np.asarray(v, np.float64) * (min(1.0, self.threshold / norm) if norm else 1.0)
        return Dense(clipped + self.noise * t.rng.standard_normal(v.size) if self.noise else clipped)
