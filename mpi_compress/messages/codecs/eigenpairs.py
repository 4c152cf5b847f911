import numpy as np

from mpi_compress.messages.codecs.base import Bytes, FieldCodec, Known, codecs
from mpi_compress.messages.codecs.fields import Reader, float_bytes
from mpi_compress.messages.kinds import Compressed, Eigenpairs, side_of


@codecs.register("eigenpairs")
class EigenpairsAsFloats(FieldCodec):
    """R eigenvalues and their vectors as R(s + 1) floats, and nothing else."""

    kinds = (Eigenpairs,)

    def encode(self, compressed: Compressed) -> Bytes:
        assert isinstance(compressed, Eigenpairs)
        return float_bytes(np.concatenate([compressed.values, compressed.vectors.ravel()]), self.float_format).copy()

    def read(self, r: Reader, dim: int, kind: type[Compressed], known: Known) -> Eigenpairs:
        rank, s = known["rank"], side_of(dim)
        return Eigenpairs(dim, r.floats(rank), r.floats(rank * s).reshape(rank, s))
