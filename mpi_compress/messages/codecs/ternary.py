"""Codecs of signs by symbols: ternary digits, and GSpar's string of two bits a coordinate."""

import numpy as np

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import ternary as kernels
from mpi_compress.messages.codecs.base import Bytes, FieldCodec, Known, codecs
from mpi_compress.messages.codecs.fixed import Fixed
from mpi_compress.messages.fields import Reader, float_bytes, number_bytes
from mpi_compress.messages.kinds import Compressed, Hybrid, Ternary, index_bits


@codecs.register("ternary")
class TernaryDigits(FieldCodec):
    """The magnitude, and the signs as ternary digits, 17 of them in 27 bits: 1.588 bits each, where log2 3 = 1.585."""

    kinds = (Ternary,)

    def encode(self, compressed: Compressed) -> Bytes:
        assert isinstance(compressed, Ternary)
        nbytes, last_bits = digits_room(compressed.dim)
        out = np.empty(nbytes, dtype=np.uint8)
        kernels.write_signs(compressed.signs, last_bits, out)
        return np.concatenate([number_bytes(compressed.magnitude, self.float_format), out])

    def read(self, r: Reader, dim: int, kind: type[Compressed], known: Known) -> Ternary:
        magnitude, (nbytes, last_bits), start = r.number(), digits_room(dim), r.at
        r.take(nbytes, "an array of ternary digits")
        signs = np.empty(dim, dtype=np.int8)
        if not kernels.read_signs(r.readable, start, last_bits, signs):
            raise CorruptMessage("a block is no number of 17 ternary digits")
        return Ternary(signs, magnitude)


def digits_room(dim: int) -> tuple[int, int]:
    """The bytes that `dim` digits take, and the bits of the last block, which has dim mod 17 of them."""
    blocks, rest = divmod(dim, kernels.BLOCK)
    last_bits = (3**rest - 1).bit_length()
    return (blocks * kernels.BLOCK_BITS + last_bits + 7) // 8, last_bits


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
        kernels.write_string(c.indices, c.sign_indices, c.negative, c.dim, string)
        values = float_bytes(c.values, self.float_format)
        return np.concatenate([np.array([STRING], dtype=np.uint8), string, values, number_bytes(c.magnitude, self.float_format)])

    def read(self, r: Reader, dim: int, kind: type[Compressed], known: Known) -> Compressed:
        if r.byte(STRING, "form of a hybrid message") == INDEXED:
            return Fixed(self.float).read(r, dim, Hybrid, known)
        string = r.take((dim + 3) // 4, "a string of symbols")
        s, n_signs = kernels.count_string(string, 0, dim)
        indices, sign_indices = np.empty(s, dtype=np.uint32), np.empty(n_signs, dtype=np.uint32)
        negative = np.empty(n_signs, dtype=np.bool_)
        kernels.read_string(string, 0, dim, indices, sign_indices, negative)
        return Hybrid(dim, indices, r.floats(s), sign_indices, negative, r.number())
