from mpi_compress.core.streams import Round
from mpi_compress.messages.compressors.base import Compressor, compressors
from mpi_compress.messages.kinds import Compressed, Dense, Vector


@compressors.register("identity")
class Identity(Compressor):
    """C(v) = v: all d coordinates."""

    makes = Dense
    codec = "dense"

    def compress(self, v: Vector, t: Round) -> Compressed:
        return Dense(v)

    def compress_again(self, c: Compressed, t: Round) -> Compressed:
        return c

    def delta(self, dim: int) -> float:
        return 1.0

    def omega(self, dim: int) -> float:
        return 0.0
