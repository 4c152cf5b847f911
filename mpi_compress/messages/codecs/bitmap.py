from typing import Any

import numpy as np

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import bits
from mpi_compress.messages.codecs.base import Bytes, codecs
from mpi_compress.messages.codecs.indexed import IndexCodec
from mpi_compress.messages.fields import Reader
from mpi_compress.messages.kinds import Indices


@codecs.register("bitmap")
class Bitmap(IndexCodec):
    """Index sets as d bits, 1 for each index that is in the set."""

    def write_set(self, indices: Indices, dim: int, ahead: int = 0) -> Bytes:
        out = np.zeros(ahead + (dim + 7) // 8, dtype=np.uint8)
        bits.write_bitmap(indices, out[ahead:])
        return out

    def read_set(self, r: Reader, dim: int, indices: Indices) -> None:
        if not bits.read_bitmap(r.take((dim + 7) // 8, "a bitmap"), 0, dim, indices):
            raise CorruptMessage(f"no bitmap of {indices.size} among {dim} indices ends at byte {r.at}")

    def planned_set_bytes(self, T: Any, dim: int) -> Any:
        return (dim + 7) // 8
