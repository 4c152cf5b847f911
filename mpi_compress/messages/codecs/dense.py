from mpi_compress.messages.codecs.base import Bytes, FieldCodec, Known, codecs
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
