from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpi_compress.codecs.base import NOTHING, Bytes, Codec, codecs
from mpi_compress.codecs.dense import DenseFloats
from mpi_compress.codecs.fixed import Fixed
from mpi_compress.compressed import Compressed, Dense, Sparse
from mpi_compress.errors import CorruptMessage


@codecs.register("auto")
@dataclass(frozen=True)
class Auto(Codec):
    """For each message the shorter of index-and-value and dense; one byte ahead says which."""

    def writes(self, kind: type[Compressed]) -> bool:
        return kind in (Sparse, Dense)

    def encode(self, compressed: Compressed) -> Bytes:
        fixed = Fixed(self.float)
        dense = DenseFloats(self.float)
        dense_bytes = compressed.dim * self.float // 8
        sparse = isinstance(compressed, Sparse) and fixed.sparse_bytes(compressed.elements, compressed.dim) < dense_bytes
        message = fixed.encode(compressed) if sparse else dense.encode(compressed)
        return np.concatenate([np.array([sparse], dtype=np.uint8), message])

    def decode(
        self, data: Bytes, at: int, dim: int, kind: type[Compressed], known: Mapping[str, Any] = NOTHING
    ) -> tuple[Compressed, int]:
        if at >= data.size or data[at] > 1:
            raise CorruptMessage("the first byte names no codec")
        if data[at]:
            return Fixed(self.float).decode(data, at + 1, dim, Sparse)
        return DenseFloats(self.float).decode(data, at + 1, dim, Dense)
