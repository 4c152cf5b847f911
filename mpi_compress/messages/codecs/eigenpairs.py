from mpi_compress.messages.codecs.base import LayoutCodec, codecs


@codecs.register("eigenpairs")
class EigenpairsAsFloats(LayoutCodec):
    """R eigenvalues and their vectors as R(s + 1) floats, and nothing else."""

    layout = "eigenpairs"
