from dataclasses import dataclass
from typing import Any

import numpy as np

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import bits
from mpi_compress.messages.codecs.base import Bytes, codecs
from mpi_compress.messages.codecs.indexed import IndexCodec
from mpi_compress.messages.kinds import Indices


@codecs.register("bitmap")
@dataclass(frozen=True)
class Bitmap(IndexCodec):
    """Index sets as d bits, 1 for each index that is in the set."""

    def write_set(self, indices: Indices, dim: int, ahead: int = 0) -> Bytes:
        out = np.zeros(ahead + (dim + 7) // 8, dtype=np.uint8)
        bits.write_bitmap(indices, out[ahead:])
        return out

    def read_set(self, data: Bytes, at: int, dim: int, count: int) -> tuple[Indices, int]:
        end = at + (dim + 7) // 8
        indices = np.empty(count, dtype=np.uint32)
        if end > data.size or not bits.read_bitmap(data, at, dim, indices):
            raise CorruptMessage(f"no bitmap of {count} among {dim} indices from byte {at} of {data.size} on")
        return indices, end

    def set_bytes(self, indices: Indices, dim: int) -> int:
        return self.planned_set_bytes(indices.size, dim)

    def planned_set_bytes(self, T: Any, dim: int) -> Any:
        return (dim + 7) // 8
