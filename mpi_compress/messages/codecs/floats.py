"""Codecs of floats alone, and of the layouts that kinds say themselves."""

from typing import Any

from mpi_compress.messages.codecs.base import FieldCodec, codecs
from mpi_compress.messages.fields import Field
from mpi_compress.messages.kinds import Dense


@codecs.register("dense")
class DenseFloats(FieldCodec):
    """All d coordinates as floats, and nothing else."""

    def write(self, c: Any) -> Field:
        return super().write(c if isinstance(c, Dense) else Dense(c.dense()))


@codecs.register("eigenpairs")
class EigenpairsAsFloats(FieldCodec):
    """R eigenvalues and their vectors as R(s + 1) floats, and nothing else."""


@codecs.register("packed")
class Packed(FieldCodec):
    """A sign of one bit for every coordinate, and for some kinds a whole number of fixed width, as each kind says."""


@codecs.register("seeded")
class Seeded(FieldCodec):
    """A seed of 32 bits, from which the receiver draws what the floats belong to, and the floats."""
