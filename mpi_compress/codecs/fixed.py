from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpi_compress.codecs.base import (
    NOTHING,
    Bytes,
    Codec,
    codecs,
    count_bytes,
    float_bytes,
    read_count,
    read_floats,
)
from mpi_compress.compressed import Compressed, Dense, Sparse, index_bits
from mpi_compress.errors import CorruptMessage
from mpi_compress.kernels import bits as kernels


@codecs.register("fixed")
@dataclass(frozen=True)
class Fixed(Codec):
    """Index and value: T, then T floats of 32 or 64 bits, then T indices of ⌈log2 d⌉ bits (CAT eq. 5).

    A dense vector has no indices: it is its d floats.
    """

    def writes(self, kind: type[Compressed]) -> bool:
        return kind in (Sparse, Dense)

    def encode(self, compressed: Compressed) -> Bytes:
        if isinstance(compressed, Dense):
            return float_bytes(compressed.values, self.float).copy()
        assert isinstance(compressed, Sparse)
        count = count_bytes(compressed.indices.size)
        values = float_bytes(compressed.values, self.float)
        width = index_bits(compressed.dim)
        start = count.size + values.size
        out = np.empty(start + (compressed.indices.size * width + 7) // 8, dtype=np.uint8)
        out[: count.size] = count
        out[count.size : start] = values
        kernels.pack_fields(compressed.indices, width, out[start:])
        return out

    def decode(
        self, data: Bytes, at: int, dim: int, kind: type[Compressed], known: Mapping[str, Any] = NOTHING
    ) -> tuple[Compressed, int]:
        if kind is Dense:
            values, end = read_floats(data, at, dim, self.float)
            return Dense(values), end
        count, at = read_count(data, at, most=dim)
        values, at = read_floats(data, at, count, self.float)
        width = index_bits(dim)
        end = at + (count * width + 7) // 8
        if end > data.size:
            raise CorruptMessage(f"{count} indices of {width} bits end at byte {end}; there are {data.size}")
        indices = np.empty(count, dtype=np.uint32)
        kernels.unpack_fields(data[at:end], width, indices)
        if not kernels.strictly_increasing_below(indices, dim):
            raise CorruptMessage(f"the {count} indices are no increasing ones below {dim}")
        return Sparse(dim, indices, values), end

    def sparse_bytes(self, count: int, dim: int) -> int:
        """The length of a message of `count` entries."""
        return count_bytes(count).size + count * self.float // 8 + (count * index_bits(dim) + 7) // 8
