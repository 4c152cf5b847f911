"""The codec of indices of fixed width."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import bits, floats
from mpi_compress.messages.codecs.base import INDEXED, Bytes, IndexCodec, Known, codecs
from mpi_compress.messages.fields import Reader, refuse
from mpi_compress.messages.kinds import Compressed, Indices, Sparse, SparseRows, index_bits


@codecs.register("fixed")
class Fixed(IndexCodec):
    """Indices of ⌈log2 d⌉ bits each (CAT eq. 5).

    A dense vector has no indices: it is its d floats. Coordinates drawn from a shared seed have none either: they are the seed's
    64 bits and T floats.
    """

    kinds = INDEXED

    def encode(self, compressed: Any) -> Bytes:
        if type(compressed) is Sparse:  # the most frequent kind first
            T, width = compressed.indices.size, index_bits(compressed.dim)
            start = floats.count_length(T) + T * self.float_format.nbytes
            out = np.empty(start + (T * width + 7) // 8, dtype=np.uint8)
            if not floats.put_pairs(compressed.indices, compressed.values, width, self.float_format.precision, start, out):
                refuse(compressed.values, self.float_format)
            return out
        return compressed.write(self.float_format) if "fixed" in compressed.layouts else super().encode(compressed)

    def read(self, r: Reader, dim: int, kind: Any, known: Known) -> Compressed:
        if "fixed" in kind.layouts:
            return kind.read(r, dim, known)
        at, data = r.at, r.data
        if kind is Sparse and type(r) is Reader and at < data.size >= 8 and (count := data.item(at)) <= min(dim, 127):
            width = index_bits(dim)  # a short message is read by one call
            end = at + 1 + count * self.float_format.nbytes + (count * width + 7) // 8
            indices, values = np.empty(count, dtype=np.uint32), np.empty(count)
            if end <= data.size and floats.take_pairs(data, at + 1, width, self.float_format.precision, dim, indices, values):
                r.at = end
                return Sparse(dim, indices, values)
        return super().read(r, dim, kind, known)

    def encode_all(self, rows: SparseRows) -> tuple[Bytes, NDArray[np.int64]] | None:
        """The messages of many vectors, as `encode` writes them, one after the other, and where each ends; None: a finite value
        overflows. The bytes are 8 more than the messages take, because `decode_all` reads whole words."""
        data, ends, right = floats.put_rows(rows.indices, rows.values, rows.ends, index_bits(rows.dim), self.float_format.precision)
        return (data, ends) if right else None

    def decode_all(self, data: Bytes, ends: NDArray[np.int64], dim: int) -> SparseRows:
        """Decode the messages that `encode_all` wrote."""
        indices, values, stops, right = floats.take_rows(data, ends, index_bits(dim), self.float_format.precision, dim)
        if not right:
            raise CorruptMessage(f"indices are no increasing ones below {dim}")
        return SparseRows(dim, indices, values, stops)

    def write_set(self, indices: Indices, dim: int) -> Bytes:
        out = np.empty(self.set_bytes(indices, dim), dtype=np.uint8)
        bits.pack_fields(indices, index_bits(dim), out, 0)
        return out

    def read_set(self, r: Reader, dim: int, indices: Indices) -> None:
        start = r.at
        r.take(self.set_bytes(indices, dim), "a set of indices")
        if not bits.read_fields(r.readable, start, index_bits(dim), dim, indices):
            raise CorruptMessage(f"the {indices.size} indices are no increasing ones below {dim}")

    def planned_set_bytes(self, T: Any, dim: int) -> Any:
        return (T * index_bits(dim) + 7) // 8
