"""Codecs that write what a kind has as its layout of that name."""

from mpi_compress.messages.codecs.base import LayoutCodec, codecs


@codecs.register("eigenpairs")
class EigenpairsAsFloats(LayoutCodec):
    """R eigenvalues and their vectors as R(s + 1) floats, and nothing else."""

    layout = "eigenpairs"


@codecs.register("packed")
class Packed(LayoutCodec):
    """A sign of one bit for every coordinate, and for some kinds a whole number of fixed width, as each kind says."""

    layout = "packed"


@codecs.register("seeded")
class Seeded(LayoutCodec):
    """A seed of 32 bits, from which the receiver draws what the floats belong to, and the floats."""

    layout = "seeded"
