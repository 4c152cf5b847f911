"""Codecs of floats alone, and of the layouts that kinds say themselves."""

from mpi_compress.messages.codecs.base import Bytes, FieldCodec, Known, LayoutCodec, codecs
from mpi_compress.messages.fields import Reader, float_bytes
from mpi_compress.messages.kinds import Compressed, Dense


@codecs.register("dense")
class DenseFloats(FieldCodec):
    """All d coordinates as floats, and nothing else."""

    kinds = (Dense,)

    def encode(self, compressed: Compressed) -> Bytes:
        values = compressed.values if isinstance(compressed, Dense) else compressed.dense()
        return float_bytes(values, self.float_format).copy()

    def read(self, r: Reader, dim: int, kind: type[Compressed], known: Known) -> Dense:
        return Dense(r.floats(dim))


@codecs.register("eigenpairs")
class EigenpairsAsFloats(LayoutCodec):
    """R eigenvalues and their vectors as R(s + 1) floats, and nothing else."""

    layouts = ("eigenpairs",)


@codecs.register("packed")
class Packed(LayoutCodec):
    """A sign of one bit for every coordinate, and for some kinds a whole number of fixed width, as each kind says."""

    layouts = ("packed",)


@codecs.register("seeded")
class Seeded(LayoutCodec):
    """A seed of 32 bits, from which the receiver draws what the floats belong to, and the floats."""

    layouts = ("seeded",)
