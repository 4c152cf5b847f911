"""Codecs of floats alone, and of the layouts that kinds say themselves."""

from mpi_compress.messages.codecs.base import Bytes, LayoutCodec, codecs
from mpi_compress.messages.kinds import Compressed, Dense


@codecs.register("dense")
class DenseFloats(LayoutCodec):
    """All d coordinates as floats, and nothing else."""

    def encode(self, compressed: Compressed) -> Bytes:
        return super().encode(compressed if isinstance(compressed, Dense) else Dense(compressed.dense()))


@codecs.register("eigenpairs")
class EigenpairsAsFloats(LayoutCodec):
    """R eigenvalues and their vectors as R(s + 1) floats, and nothing else."""


@codecs.register("packed")
class Packed(LayoutCodec):
    """A sign of one bit for every coordinate, and for some kinds a whole number of fixed width, as each kind says."""


@codecs.register("seeded")
class Seeded(LayoutCodec):
    """A seed of 32 bits, from which the receiver draws what the floats belong to, and the floats."""
