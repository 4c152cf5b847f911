"""Codecs of fields of fixed width: floats, layouts that kinds say themselves, indices, ternary digits, and GSpar's two forms."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import bits, floats, ternary
from mpi_compress.messages.codecs.base import NOTHING, BulkCodec, Bytes, Decoded, FieldCodec, IndexCodec, Known, LayoutCodec, codecs
from mpi_compress.messages.fields import Reader, count_length, float_bytes, number_bytes, refuse
from mpi_compress.messages.kinds import Compressed, Dense, Hybrid, Indices, Sparse, SparseRows, Ternary, index_bits


@codecs.register("dense")
class DenseFloats(FieldCodec):
    """All d coordinates as floats, and nothing else."""

    kinds = (Dense,)

    def encode(self, compressed: Compressed) -> Bytes:
        values = compressed.values if isinstance(compressed, Dense) else compressed.dense()
        return float_bytes(values, self.float_format).copy()

    def read(self, r: Reader, dim: int, kind: type[Compressed], known: Known) -> Dense:
        return Dense(r.floats(dim))


@codecs.register("eigenpairs")
class EigenpairsAsFloats(LayoutCodec):
    """R eigenvalues and their vectors as R(s + 1) floats, and nothing else."""

    layout = "eigenpairs"


@codecs.register("packed")
class Packed(LayoutCodec):
    """A sign of one bit for every coordinate, and for some kinds a whole number of fixed width, as each kind says."""

    layout = "packed"


@codecs.register("seeded")
class Seeded(LayoutCodec):
    """A seed of 32 bits, from which the receiver draws what the floats belong to, and the floats."""

    layout = "seeded"


@codecs.register("fixed")
class Fixed(IndexCodec, BulkCodec):
    """Indices of ⌈log2 d⌉ bits each (CAT eq. 5).

    A dense vector has no indices: it is its d floats. Coordinates drawn from a shared seed have none either: they are the seed's
    64 bits and T floats.
    """

    layout = "fixed"

    def encode(self, compressed: Any) -> Bytes:
        if type(compressed) is Sparse:  # the most frequent kind first
            T, width = compressed.indices.size, index_bits(compressed.dim)
            start = count_length(T) + T * self.float_format.nbytes
            out = np.empty(start + (T * width + 7) // 8, dtype=np.uint8)
            if not floats.put_pairs(compressed.indices, compressed.values, width, self.float_format.precision, start, out):
                refuse(compressed.values, self.float_format)
            return out
        return compressed.write(self.float_format) if self.layout in compressed.layouts else super().encode(compressed)

    def decode(self, data: Bytes, at: int, dim: int, kind: type[Compressed], known: Known = NOTHING) -> Decoded:
        # a short message is read by one call
        if kind is Sparse and at < data.size >= 8 and (count := data.item(at)) <= min(dim, 127):
            width = index_bits(dim)
            end = at + 1 + count * self.float_format.nbytes + (count * width + 7) // 8
            indices, values = np.empty(count, dtype=np.uint32), np.empty(count)
            if end <= data.size and floats.take_pairs(data, at + 1, width, self.float_format.precision, dim, indices, values):
                return Sparse(dim, indices, values), end
        r = Reader(data, at, self.float_format)
        return self.read(r, dim, kind, known), r.at

    def read(self, r: Reader, dim: int, kind: Any, known: Known) -> Compressed:
        return kind.read(r, dim, known) if self.layout in kind.layouts else super().read(r, dim, kind, known)

    def encode_all(self, rows: SparseRows) -> tuple[Bytes, NDArray[np.int64]] | None:
        data, ends, right = floats.put_rows(rows.indices, rows.values, rows.ends, index_bits(rows.dim), self.float_format.precision)
        return (data, ends) if right else None

    def decode_all(self, data: Bytes, ends: NDArray[np.int64], dim: int) -> SparseRows:
        indices, values, stops, right = floats.take_rows(data, ends, index_bits(dim), self.float_format.precision, dim)
        if not right:
            raise CorruptMessage(f"indices are no increasing ones below {dim}")
        return SparseRows(dim, indices, values, stops)

    def write_set(self, indices: Indices, dim: int, ahead: int = 0) -> Bytes:
        out = np.empty(ahead + self.set_bytes(indices, dim), dtype=np.uint8)
        bits.pack_fields(indices, index_bits(dim), out, ahead)
        return out

    def read_set(self, r: Reader, dim: int, indices: Indices) -> None:
        start = r.at
        r.take(self.set_bytes(indices, dim), "a set of indices")
        if not bits.read_fields(r.readable, start, index_bits(dim), dim, indices):
            raise CorruptMessage(f"the {indices.size} indices are no increasing ones below {dim}")

    def planned_set_bytes(self, T: Any, dim: int) -> Any:
        return (T * index_bits(dim) + 7) // 8


@codecs.register("ternary")
class TernaryDigits(FieldCodec):
    """The magnitude, and the signs as ternary digits, 17 of them in 27 bits: 1.588 bits each, where log2 3 = 1.585."""

    kinds = (Ternary,)

    def encode(self, compressed: Compressed) -> Bytes:
        assert isinstance(compressed, Ternary)
        nbytes, last_bits = digits_room(compressed.dim)
        out = np.empty(nbytes, dtype=np.uint8)
        ternary.write_signs(compressed.signs, last_bits, out)
        return np.concatenate([number_bytes(compressed.magnitude, self.float_format), out])

    def read(self, r: Reader, dim: int, kind: type[Compressed], known: Known) -> Ternary:
        magnitude, (nbytes, last_bits), start = r.number(), digits_room(dim), r.at
        r.take(nbytes, "an array of ternary digits")
        signs = np.empty(dim, dtype=np.int8)
        if not ternary.read_signs(r.readable, start, last_bits, signs):
            raise CorruptMessage("a block is no number of 17 ternary digits")
        return Ternary(signs, magnitude)


def digits_room(dim: int) -> tuple[int, int]:
    """The bytes that `dim` digits take, and the bits of the last block, which has dim mod 17 of them."""
    blocks, rest = divmod(dim, ternary.BLOCK)
    last_bits = (3**rest - 1).bit_length()
    return (blocks * ternary.BLOCK_BITS + last_bits + 7) // 8, last_bits


INDEXED, STRING = 0, 1


@codecs.register("gspar-hybrid")
class GSparHybrid(FieldCodec):
    """The shorter of GSpar's two forms (Wangni et al. 2018, §2.3); the first byte says which.

    indexed   s indices with values, r indices with signs of one bit, the magnitude: as `fixed` writes them
    string    two bits for every coordinate: 0, ± the magnitude, or a value; the s values; the magnitude
    """

    kinds = (Hybrid,)

    def encode(self, compressed: Compressed) -> Bytes:
        assert isinstance(compressed, Hybrid)
        c = compressed
        if c.elements * index_bits(c.dim) + c.sign_indices.size <= 2 * c.dim:
            return np.concatenate([np.array([INDEXED], dtype=np.uint8), Fixed(self.float).encode(c)])
        string = np.zeros((c.dim + 3) // 4, dtype=np.uint8)
        ternary.write_string(c.indices, c.sign_indices, c.negative, c.dim, string)
        values = float_bytes(c.values, self.float_format)
        return np.concatenate([np.array([STRING], dtype=np.uint8), string, values, number_bytes(c.magnitude, self.float_format)])

    def read(self, r: Reader, dim: int, kind: type[Compressed], known: Known) -> Compressed:
        if r.byte(STRING, "form of a hybrid message") == INDEXED:
            return Fixed(self.float).read(r, dim, Hybrid, known)
        string = r.take((dim + 3) // 4, "a string of symbols")
        s, n_signs = ternary.count_string(string, 0, dim)
        indices, sign_indices = np.empty(s, dtype=np.uint32), np.empty(n_signs, dtype=np.uint32)
        negative = np.empty(n_signs, dtype=np.bool_)
        ternary.read_string(string, 0, dim, indices, sign_indices, negative)
        return Hybrid(dim, indices, r.floats(s), sign_indices, negative, r.number())
