"""The codec of indices of fixed width."""

from typing import Any

from mpi_compress.kernels import sets
from mpi_compress.messages.codecs.base import INDEXED, IndexCodec, codecs
from mpi_compress.messages.kinds import index_bits


@codecs.register("fixed")
class Fixed(IndexCodec):
    """Indices of ⌈log2 d⌉ bits each (CAT eq. 5).

    A dense vector has no indices: it is its d floats. Coordinates drawn from a shared seed have none either: they are the seed's
    64 bits and T floats.
    """

    kinds, way = INDEXED, sets.FIXED

    def planned_set_bytes(self, T: Any, dim: int) -> Any:
        return (T * index_bits(dim) + 7) // 8
