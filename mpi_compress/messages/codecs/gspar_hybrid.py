from dataclasses import dataclass

import numpy as np

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import ternary as kernels
from mpi_compress.messages.codecs.base import NOTHING, Bytes, Codec, Decoded, Known, codecs
from mpi_compress.messages.codecs.fields import float_bytes, number_bytes, read_floats, read_number
from mpi_compress.messages.codecs.fixed import Fixed
from mpi_compress.messages.kinds import Compressed, Hybrid, index_bits

INDEXED, STRING = 0, 1


@codecs.register("gspar-hybrid")
@dataclass(frozen=True)
class GSparHybrid(Codec):
    """The shorter of GSpar's two forms (Wangni et al. 2018, §2.3); the first byte says which.

    indexed   s indices with values, r indices with signs of one bit, the magnitude: as `fixed` writes them
    string    two bits for every coordinate: 0, ± the magnitude, or a value; the s values; the magnitude
    """

    def writes(self, kind: type[Compressed]) -> bool:
        return kind is Hybrid

    def encode(self, compressed: Compressed) -> Bytes:
        assert isinstance(compressed, Hybrid)
        c = compressed
        indexed_bits = c.elements * index_bits(c.dim) + c.sign_indices.size
        if indexed_bits <= 2 * c.dim:
            return np.concatenate([np.array([INDEXED], dtype=np.uint8), Fixed(self.float).encode(c)])
        string = np.zeros((c.dim + 3) // 4, dtype=np.uint8)
        kernels.write_string(c.indices, c.sign_indices, c.negative, c.dim, string)
        values = float_bytes(c.values, self.float_format)
        return np.concatenate([np.array([STRING], dtype=np.uint8), string, values, number_bytes(c.magnitude, self.float_format)])

    def decode(self, data: Bytes, at: int, dim: int, kind: type[Compressed], known: Known = NOTHING) -> Decoded:
        if at >= data.size or data[at] > STRING:
            raise CorruptMessage(f"byte {at} of {data.size} names no form of a hybrid message")
        if data[at] == INDEXED:
            return Fixed(self.float).decode(data, at + 1, dim, Hybrid)
        start, at = at + 1, at + 1 + (dim + 3) // 4
        if at > data.size:
            raise CorruptMessage(f"a string of {dim} coordinates ends at byte {at}; there are {data.size}")
        s, r = kernels.count_string(data, start, dim)
        indices, sign_indices = np.empty(s, dtype=np.uint32), np.empty(r, dtype=np.uint32)
        negative = np.empty(r, dtype=np.bool_)
        kernels.read_string(data, start, dim, indices, sign_indices, negative)
        values, at = read_floats(data, at, s, self.float_format)
        magnitude, at = read_number(data, at, self.float_format)
        return Hybrid(dim, indices, values, sign_indices, negative, magnitude), at
