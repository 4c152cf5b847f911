"""The codec of signs as ternary digits."""

import numpy as np

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import ternary
from mpi_compress.messages.codecs.base import Bytes, FieldCodec, Known, codecs
from mpi_compress.messages.fields import Reader, number_bytes
from mpi_compress.messages.kinds import Compressed, Ternary


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
