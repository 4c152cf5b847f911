"""The codec of GSpar's messages."""

import numpy as np

from mpi_compress.messages.codecs.base import Bytes, FieldCodec, Known, codecs
from mpi_compress.messages.codecs.fixed import Fixed
from mpi_compress.messages.fields import Reader, float_bytes, number_bytes, one_byte
from mpi_compress.messages.kinds import Compressed, Hybrid, index_bits

_INDICES, _STRING = 0, 1  # forms


@codecs.register("gspar-hybrid")
class GSparHybrid(FieldCodec):
    """The shorter of GSpar's two forms (Wangni et al. 2018, §2.3); the first byte says which.

    indexed   s indices with values, r indices with signs of one bit, the magnitude: as `fixed` writes them
    string    two bits for every coordinate: + the magnitude, −, both for a value; the s values; the magnitude
    """

    kinds = (Hybrid,)

    def encode(self, compressed: Compressed) -> Bytes:
        assert isinstance(compressed, Hybrid)
        c = compressed
        if c.elements * index_bits(c.dim) + c.sign_indices.size <= 2 * c.dim:
            return np.concatenate([one_byte(_INDICES), Fixed(self.float).encode(c)])
        symbols = np.zeros((c.dim, 2), dtype=np.bool_)
        symbols[c.indices], symbols[c.sign_indices, c.negative.view(np.uint8)] = True, True
        string = np.packbits(symbols, bitorder="little")
        values = float_bytes(c.values, self.float_format)
        return np.concatenate([one_byte(_STRING), string, values, number_bytes(c.magnitude, self.float_format)])

    def read(self, r: Reader, dim: int, kind: type[Compressed], known: Known) -> Compressed:
        if r.byte(_STRING, "form of a hybrid message") == _INDICES:
            return Fixed(self.float).read(r, dim, Hybrid, known)
        string = r.take((dim + 3) // 4, "a string of symbols")
        plus, minus = np.unpackbits(string, count=2 * dim, bitorder="little").view(np.bool_).reshape(dim, 2).T
        indices, sign_indices = (np.flatnonzero(held).astype(np.uint32) for held in (plus & minus, plus ^ minus))
        return Hybrid(dim, indices, r.floats(indices.size), sign_indices, minus[sign_indices], r.number())
