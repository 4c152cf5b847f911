"""The codec of GSpar's messages."""

import numpy as np

from mpi_compress.kernels import ternary
from mpi_compress.messages.codecs.base import Bytes, FieldCodec, Known, codecs
from mpi_compress.messages.codecs.fixed import Fixed
from mpi_compress.messages.fields import Reader, float_bytes, number_bytes
from mpi_compress.messages.kinds import Compressed, Hybrid, index_bits

_INDICES, _STRING = 0, 1  # forms


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
            return np.concatenate([np.array([_INDICES], dtype=np.uint8), Fixed(self.float).encode(c)])
        string = np.zeros((c.dim + 3) // 4, dtype=np.uint8)
        ternary.write_string(c.indices, c.sign_indices, c.negative, c.dim, string)
        values = float_bytes(c.values, self.float_format)
        return np.concatenate([np.array([_STRING], dtype=np.uint8), string, values, number_bytes(c.magnitude, self.float_format)])

    def read(self, r: Reader, dim: int, kind: type[Compressed], known: Known) -> Compressed:
        if r.byte(_STRING, "form of a hybrid message") == _INDICES:
            return Fixed(self.float).read(r, dim, Hybrid, known)
        string = r.take((dim + 3) // 4, "a string of symbols")
        s, n_signs = ternary.count_string(string, 0, dim)
        indices, sign_indices = np.empty(s, dtype=np.uint32), np.empty(n_signs, dtype=np.uint32)
        negative = np.empty(n_signs, dtype=np.bool_)
        ternary.read_string(string, 0, dim, indices, sign_indices, negative)
        return Hybrid(dim, indices, r.floats(s), sign_indices, negative, r.number())
