from mpi_compress.messages.codecs.base import LayoutCodec, codecs


@codecs.register("seeded")
class Seeded(LayoutCodec):
    """A seed of 32 bits, from which the receiver draws what the floats belong to, and the floats."""

    layout = "seeded"
