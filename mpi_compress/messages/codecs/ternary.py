"""The codec of signs as ternary digits."""

from typing import Any

import numpy as np

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import ternary
from mpi_compress.messages.codecs.base import FieldCodec, SideInfo, codecs
from mpi_compress.messages.fields import ROOM, Field, Reader, joined, numbers
from mpi_compress.messages.kinds import Ternary


@codecs.register("ternary")
class TernaryDigits(FieldCodec):
    """The magnitude, and the signs as ternary digits, 17 of them in 27 bits: 1.588 bits each, where log2 3 = 1.585."""

    kinds = (Ternary,)

    def write(self, c: Any) -> Field:
        nbytes, last_bits = digits_room(c.dim)
        out, ends = np.empty(c.rows * nbytes + ROOM, dtype=np.uint8), np.empty(c.rows, dtype=np.int64)
        ternary.put_digits(c.signs, last_bits, out, ends)
        return joined(numbers(c.magnitude, self.float_format), (out, ends))

    def read(self, r: Reader, dim: int, kind: Any, known: SideInfo) -> Ternary:
        magnitude, (nbytes, last_bits) = r.numbers(), digits_room(dim)
        starts = r.skip(8 * nbytes, "an array of ternary digits")
        signs = np.empty((starts.size, dim), dtype=np.int8)
        if not ternary.take_digits(r.data, starts, last_bits, signs):
            raise CorruptMessage("a block is no number of 17 ternary digits")
        return Ternary(signs, magnitude)


def digits_room(dim: int) -> tuple[int, int]:
    """The bytes that `dim` digits take, and the bits of the last block, which has dim mod 17 of them."""
    blocks, rest = divmod(dim, ternary.BLOCK)
    last_bits = (3**rest - 1).bit_length()
    return (blocks * ternary.BLOCK_BITS + last_bits + 7) // 8, last_bits
