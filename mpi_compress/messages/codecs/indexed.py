"""The base of codecs for index sets: it writes and reads the rest of their messages."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import bits, floats
from mpi_compress.messages.codecs import fields
from mpi_compress.messages.codecs.base import NOTHING, Bytes, Codec, Decoded, Known
from mpi_compress.messages.kinds import Compressed, Flags, Hybrid, Indices, SignSparse, Sparse


@dataclass(frozen=True)
class IndexCodec(Codec):
    """Writes index sets in its own way, and around them:

        Sparse        T, T values, the set
        SignSparse    T, the magnitude, the set, T signs of one bit
        Hybrid        s, r, s values, the magnitude, the set of s, the set of r, r signs

    with counts in seven-bit groups, and floats of the codec's format.
    """

    @abstractmethod
    def write_set(self, indices: Indices, dim: int, ahead: int = 0) -> Bytes:
        """Write the set (T,), after `ahead` free bytes."""

    @abstractmethod
    def read_set(self, data: Bytes, at: int, dim: int, count: int) -> tuple[Indices, int]:
        """Read the set of `count` ≤ dim indices that starts at data[at], and where it ends; data has at least 8 bytes.

        The end may lie beyond the data: missing bits are read as 0.

        Raises:
            CorruptMessage: no set of `count` increasing indices below dim.
        """

    def set_bytes(self, indices: Indices, dim: int) -> int:
        """The number of bytes that `write_set` writes."""
        return self.write_set(indices, dim).size

    def planned_set_bytes(self, T: Any, dim: int) -> Any:
        """The number of bytes of any set of T indices; None if T alone does not decide it."""
        return None

    def planned_bytes(self, kind: type[Compressed], T: Any, dim: int) -> Any:
        set_bytes = self.planned_set_bytes(T, dim)
        if set_bytes is None or kind not in (Sparse, SignSparse):
            return None
        values = T * self.float_format.nbytes if kind is Sparse else self.float_format.nbytes + (T + 7) // 8
        return fields.count_lengths(T) + values + set_bytes

    def writes(self, kind: type[Compressed]) -> bool:
        return kind in (Sparse, SignSparse, Hybrid)

    def encode(self, compressed: Compressed) -> Bytes:
        if isinstance(compressed, Sparse):
            T = compressed.indices.size
            out = self.write_set(compressed.indices, compressed.dim, ahead=fields.count_length(T) + T * self.float_format.nbytes)
            if not floats.put_count_and_floats(compressed.values, self.float_format.precision, out):
                fields.refuse(compressed.values, self.float_format)
            return out
        if isinstance(compressed, SignSparse):
            parts = [
                fields.count_bytes(compressed.indices.size),
                fields.number_bytes(compressed.magnitude, self.float_format),
                self.write_set(compressed.indices, compressed.dim),
                sign_bytes(compressed.negative),
            ]
        else:
            assert isinstance(compressed, Hybrid)
            parts = [
                fields.count_bytes(compressed.indices.size),
                fields.count_bytes(compressed.sign_indices.size),
                fields.float_bytes(compressed.values, self.float_format),
                fields.number_bytes(compressed.magnitude, self.float_format),
                self.write_set(compressed.indices, compressed.dim),
                self.write_set(compressed.sign_indices, compressed.dim),
                sign_bytes(compressed.negative),
            ]
        return np.concatenate(parts)

    def decode(self, data: Bytes, at: int, dim: int, kind: type[Compressed], known: Known = NOTHING) -> Decoded:
        count, at = fields.read_count(data, at, most=dim)
        if kind is Sparse:
            values, at = fields.read_floats(data, at, count, self.float_format)
            indices, at = self._set(data, at, dim, count)
            return Sparse(dim, indices, values), at
        if kind is SignSparse:
            magnitude, at = fields.read_number(data, at, self.float_format)
            indices, at = self._set(data, at, dim, count)
            negative, at = read_signs(data, at, count)
            return SignSparse(dim, indices, negative, magnitude), at
        sign_count, at = fields.read_count(data, at, most=dim - count)
        values, at = fields.read_floats(data, at, count, self.float_format)
        magnitude, at = fields.read_number(data, at, self.float_format)
        indices, at = self._set(data, at, dim, count)
        sign_indices, at = self._set(data, at, dim, sign_count)
        negative, at = read_signs(data, at, sign_count)
        if not bits.disjoint(indices, sign_indices):
            raise CorruptMessage("an index stands in both sets")
        return Hybrid(dim, indices, values, sign_indices, negative, magnitude), at

    def _set(self, data: Bytes, at: int, dim: int, count: int) -> tuple[Indices, int]:
        indices, end = self.read_set(data if data.size >= 8 else fields.readable(data), at, dim, count)
        if end > data.size:
            raise CorruptMessage(f"{count} indices end at byte {end}; there are {data.size}")
        return indices, end


def sign_bytes(negative: Flags) -> Bytes:
    """Signs as bits."""
    return np.packbits(negative, bitorder="little")


def read_signs(data: Bytes, at: int, count: int) -> tuple[Flags, int]:
    """`count` signs from data[at] on, and where they end."""
    end = at + (count + 7) // 8
    if end > data.size:
        raise CorruptMessage(f"{count} signs end at byte {end}; there are {data.size}")
    return np.unpackbits(data[at:end], count=count, bitorder="little").view(np.bool_), end
