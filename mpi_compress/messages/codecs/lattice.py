from functools import lru_cache, partial
from math import ceil, floor, inf, isfinite, log2, nan
from typing import Any

import numpy as np

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import adaptive
from mpi_compress.kernels import gaussian as kernels
from mpi_compress.messages import fields
from mpi_compress.messages.codecs.base import Bytes, FieldCodec, Known, codecs
from mpi_compress.messages.fields import LEAST_BITS, NO_BYTES, Reader
from mpi_compress.messages.kinds import Compressed, Lattice

ZERO, GAUSSIAN, ADAPTIVE, NOT_FINITE = range(4)
MOST_BITS = 62  # the longest integer
FINE = 9  # the Gaussian's standard deviation is below 2^(FINE + 1) units; finer bits are sent as they are
STEPS = 64  # standard deviations in a factor of 2, rounded up to: costs 4e-5 bits a coordinate, and tables can be kept


@codecs.register("lattice")
class LatticePoints(FieldCodec):
    """Lattice points by a range coder: one byte for the form, the radius M where it is sent, and the shorter of

        gaussian   the integers with the chances of a Gaussian of standard deviation (M + σ)/√d, stochastic (M + 2σ)/√d:
                   at most 1.0471 d + d·log2((M + 2σ)/σ) bits and the coder's few, for every vector of norm ≤ M (Lemma 2.1)
        adaptive   the integers with chances learned from those before: fewer bits if the vector is uneven

    or nothing more if all are 0. With s the standard deviation in units of Δ, the ⌊log2 s⌋ − 9 lowest bits are sent as they
    are. A radius is rounded up to the codec's floats.
    """

    kinds = (Lattice,)

    def encode(self, compressed: Compressed) -> Bytes:
        assert isinstance(compressed, Lattice)
        c = compressed
        radius = c.radius if isfinite(c.radius) or not c.radius_sent else nan
        if c.radius_sent and isfinite(radius):
            radius = fields.rounded_up(radius, self.float_format)
        head = fields.number_bytes(radius, self.float_format) if c.radius_sent else NO_BYTES
        if not isfinite(radius):
            form, body = NOT_FINITE, NO_BYTES
        elif not c.integers.any():
            form, body = ZERO, NO_BYTES
        elif adaptive.longest(c.integers, 0) > MOST_BITS:
            raise OverflowError("lattice points beyond 2^62: σ is too small for this vector")
        else:
            low_bits, below, _ = model(spread(c.sigma, radius, c.stochastic))
            room = c.dim * (low_bits + FINE + 4) // 8
            gaussian = fields.coded(partial(kernels.write_gaussian, c.integers, low_bits, below), room)
            learned = fields.write_integers(c.integers)
            form, body = (ADAPTIVE, learned) if learned.size < gaussian.size else (GAUSSIAN, gaussian)
        return np.concatenate([fields.one_byte(form), head, body])

    def read(self, r: Reader, dim: int, kind: type[Compressed], known: Known) -> Lattice:
        form = r.byte(NOT_FINITE, "form of lattice points")
        sigma, stochastic = known["sigma"], known.get("stochastic", False)
        sent = known.get("radius") is None
        radius = r.number() if sent else nan if form == NOT_FINITE else known["radius"]
        if isfinite(radius) == (form == NOT_FINITE):
            raise CorruptMessage(f"the radius {radius} does not go with the form {form}")
        if form in (ZERO, NOT_FINITE):
            return Lattice(np.zeros(dim, dtype=np.int64), sigma, radius, sent, stochastic)
        try:
            low_bits, below, guesses = model(spread(sigma, radius, stochastic))
        except OverflowError as error:
            raise CorruptMessage(str(error)) from None
        if form == ADAPTIVE:
            return Lattice(r.integers(dim, 2**MOST_BITS - 1), sigma, radius, sent, stochastic)
        r.room_for(dim, LEAST_BITS, "lattice points")
        integers = np.empty(dim, dtype=np.int64)
        r.goes_to(kernels.read_gaussian(r.readable, r.at, low_bits, below, guesses, integers))
        return Lattice(integers, sigma, radius, sent, stochastic)


def spread(sigma: float, radius: float, stochastic: bool) -> float:
    """The Gaussian's standard deviation in units of Δ = 2σ/√d: (M + σ)/(2σ), stochastic (M + 2σ)/(2σ). OverflowError where
    σ or M is not a positive finite number, or M/σ is beyond 2^50."""
    if not 0 < sigma < inf or not 0 <= radius < inf or radius > 2.0**50 * sigma:
        raise OverflowError(f"no lattice with σ = {sigma:g} for vectors of norm up to {radius:g}")
    return radius / (2 * sigma) + (1.0 if stochastic else 0.5)


def model(spread: float) -> tuple[int, Any, Any]:
    """The number of low bits to send as they are, and the Gaussian's tables for the bits above."""
    low_bits = max(0, floor(log2(spread)) - FINE)
    return low_bits, *tables(ceil(STEPS * (log2(spread) - low_bits)))


@lru_cache(maxsize=256)
def tables(step: int) -> tuple[Any, Any]:
    """The coder's tables for a standard deviation of 2^(step / STEPS) units."""
    below = kernels.cumulative(2.0 ** (step / STEPS))
    return below, kernels.first_guesses(below)
