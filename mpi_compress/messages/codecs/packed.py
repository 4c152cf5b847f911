from mpi_compress.messages.codecs.base import LayoutCodec, codecs


@codecs.register("packed")
class Packed(LayoutCodec):
    """A sign of one bit for every coordinate, and for some kinds a whole number of fixed width, as each kind says."""

    layout = "packed"
