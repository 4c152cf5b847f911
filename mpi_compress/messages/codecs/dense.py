from dataclasses import dataclass

from mpi_compress.messages.codecs.base import NOTHING, Bytes, Codec, Decoded, Known, codecs
from mpi_compress.messages.codecs.fields import float_bytes, read_floats
from mpi_compress.messages.kinds import Compressed, Dense


@codecs.register("dense")
@dataclass(frozen=True)
class DenseFloats(Codec):
    """All d coordinates as floats, and nothing else."""

    def writes(self, kind: type[Compressed]) -> bool:
        return kind is Dense

    def encode(self, compressed: Compressed) -> Bytes:
        values = compressed.values if isinstance(compressed, Dense) else compressed.dense()
        return float_bytes(values, self.float_format).copy()

    def decode(self, data: Bytes, at: int, dim: int, kind: type[Compressed], known: Known = NOTHING) -> Decoded:
        values, end = read_floats(data, at, dim, self.float_format)
        return Dense(values), end
