"""The codec of lattice points."""

from functools import lru_cache, partial
from math import ceil, floor, inf, isfinite, log2, nan
from typing import Any

import numpy as np

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import adaptive
from mpi_compress.kernels import gaussian as kernels
from mpi_compress.kernels.vectors import lengths_of
from mpi_compress.messages import fields
from mpi_compress.messages.codecs.base import FieldCodec, SideInfo, codecs, read_by, write_by
from mpi_compress.messages.fields import Field, Reader
from mpi_compress.messages.kinds import Lattice

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

    def write(self, c: Any) -> Field:
        return write_by(c.radius, c, self._write)

    def _write(self, c: Any, radius: float) -> Field:
        """The messages of rows of one radius."""
        radius = radius if isfinite(radius) or not c.radius_sent else nan
        if c.radius_sent and isfinite(radius):
            radius = fields.rounded_up(radius, self.float_format)
        forms, bodies = np.full(c.rows, NOT_FINITE), []
        if isfinite(radius):
            forms = np.where(c.integers.any(axis=1), GAUSSIAN, ZERO)
        if (forms == GAUSSIAN).any():
            if adaptive.longest(c.integers.ravel(), 0) > MOST_BITS:
                raise OverflowError("lattice points beyond 2^62: σ is too small for this vector")
            coding = model(spread(c.sigma, radius, c.stochastic))
            gaussian, learned = kernels.put_gaussian(c.integers, *coding), fields.integers(c.integers)
            shorter = lengths_of(learned[1]) < lengths_of(gaussian[1])
            forms = np.where((forms == GAUSSIAN) & shorter, ADAPTIVE, forms)
            bodies = [fields.some_of(gaussian, forms == GAUSSIAN), fields.some_of(learned, forms == ADAPTIVE)]
        head = [fields.numbers(np.full(c.rows, radius), self.float_format)] if c.radius_sent else []
        return fields.joined(fields.one_byte(forms), *head, *bodies)

    def read(self, r: Reader, dim: int, kind: Any, known: SideInfo) -> Any:
        forms = r.bytes(NOT_FINITE, "form of lattice points")
        sent = known.get("radius") is None
        radius = r.numbers() if sent else np.where(forms == NOT_FINITE, nan, known["radius"])
        if (wrong := np.isfinite(radius) == (forms == NOT_FINITE)).any():
            raise CorruptMessage(f"the radius {radius[wrong][0]} does not go with the form {forms[wrong][0]}")
        return read_by(np.stack([forms, radius], axis=1), r, partial(self._read, dim, known, sent))

    def _read(self, dim: int, known: SideInfo, sent: bool, r: Reader, head: Any) -> Lattice:
        """The rows of one form and radius."""
        (form, radius), sigma, stochastic = head, known["sigma"], known.get("stochastic", False)
        made = partial(Lattice, sigma=sigma, radius=np.full(r.at.size, radius), radius_sent=sent, stochastic=stochastic)
        if form in (ZERO, NOT_FINITE):
            return made(np.zeros((r.at.size, dim), dtype=np.int64))
        try:
            coding = model(spread(sigma, radius, stochastic))
        except OverflowError as error:
            raise CorruptMessage(str(error)) from None
        if form == ADAPTIVE:
            return made(r.integers(dim, 2**MOST_BITS - 1))
        integers = np.empty((r.at.size, dim), dtype=np.int64)
        row = kernels.take_gaussian(r.data, r.at, r.ends, *coding, integers)
        r.refuse(row, f"an array of {dim} lattice points")
        return made(integers)


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
