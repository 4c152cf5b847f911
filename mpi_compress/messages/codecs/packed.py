from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import bits
from mpi_compress.messages.codecs.base import NOTHING, Bytes, Codec, Decoded, Known, codecs
from mpi_compress.messages.codecs.fields import float_bytes, number_bytes, read_floats, read_number, readable
from mpi_compress.messages.codecs.indexed import read_signs, sign_bytes
from mpi_compress.messages.kinds import BlockSigns, Compressed, Dithered, Powers
from mpi_compress.messages.kinds.powers import LEAST, MOST

NOT_FINITE = 255  # in place of a width


@codecs.register("packed")
@dataclass(frozen=True)
class Packed(Codec):
    """A sign of one bit for every coordinate, and for some kinds a whole number of fixed width:

        BlockSigns   a float for each block, d signs
        Dithered     a float, d signs with ⌈log2(s + 1)⌉ bits each
        Powers       the width w in a byte, the least exponent in two, d signs with w bits each; w holds the vector's own range of
                     exponents, so that it is mostly below the 8 or 11 bits that the paper counts. w = 0: all are 0
    """

    def writes(self, kind: type[Compressed]) -> bool:
        return kind in (BlockSigns, Dithered, Powers)

    def encode(self, compressed: Compressed) -> Bytes:
        if isinstance(compressed, BlockSigns):
            return np.concatenate([float_bytes(compressed.scales, self.float_format), sign_bytes(compressed.negative)])
        if isinstance(compressed, Dithered):
            numbers = signed_fields(compressed.levels, compressed.most.bit_length())
            return np.concatenate([number_bytes(compressed.scale, self.float_format), numbers])
        assert isinstance(compressed, Powers)
        if not compressed.finite:
            return np.array([NOT_FINITE], dtype=np.uint8)
        width = int(np.max(np.abs(compressed.integers))).bit_length()
        if width == 0:
            return np.zeros(1, dtype=np.uint8)
        least = np.array([compressed.least], dtype="<i2").view(np.uint8)
        return np.concatenate([np.array([width], dtype=np.uint8), least, signed_fields(compressed.integers, width)])

    def decode(self, data: Bytes, at: int, dim: int, kind: type[Compressed], known: Known = NOTHING) -> Decoded:
        if kind is BlockSigns:
            scales, at = read_floats(data, at, -(-dim // known["block"]), self.float_format)
            negative, at = read_signs(data, at, dim)
            return BlockSigns(negative, scales, known["block"]), at
        if kind is Dithered:
            scale, at = read_number(data, at, self.float_format)
            levels, at = read_signed_fields(data, at, dim, known["most"].bit_length(), known["most"])
            return Dithered(levels.astype(np.int8) if known["most"] < 128 else levels, scale, known["most"]), at
        return self._powers(data, at, dim, known["fraction"])

    def _powers(self, data: Bytes, at: int, dim: int, fraction: int) -> tuple[Powers, int]:
        if at >= data.size or 31 < (width := data.item(at)) != NOT_FINITE:
            raise CorruptMessage(f"no width of fields stands at byte {at} of {data.size}")
        if width in (0, NOT_FINITE):
            return Powers(np.zeros(dim, dtype=np.int32), 0, fraction, finite=width == 0), at + 1
        if at + 3 > data.size:
            raise CorruptMessage(f"an exponent ends at byte {at + 3}; there are {data.size}")
        least = int(data[at + 1 : at + 3].view("<i2")[0])
        if not LEAST <= least <= MOST:
            raise CorruptMessage(f"2^{least} is no float")
        integers, end = read_signed_fields(data, at + 3, dim, width, (MOST + 1 - least) << fraction)
        return Powers(integers, least, fraction), end


def signed_fields(integers: NDArray[np.signedinteger], width: int) -> Bytes:
    """Integers (d,) below 2^width ≤ 2³¹ in size, with their signs as the lowest bits."""
    fields = np.abs(integers).astype(np.uint32) << np.uint32(1) | (integers < 0)
    out = np.empty((integers.size * (width + 1) + 7) // 8, dtype=np.uint8)
    bits.pack_fields(fields, width + 1, out, 0)
    return out


def read_signed_fields(data: Bytes, at: int, dim: int, width: int, most: int) -> tuple[NDArray[np.int32], int]:
    """`dim` integers that `signed_fields` wrote from data[at] on, up to `most` in size, and where they end."""
    end = at + (dim * (width + 1) + 7) // 8
    if end > data.size:
        raise CorruptMessage(f"{dim} fields of {width + 1} bits end at byte {end}; there are {data.size}")
    fields = np.empty(dim, dtype=np.uint32)
    bits.read_fields(readable(data), at, width + 1, 0, fields)
    sizes = (fields >> np.uint32(1)).astype(np.int32)
    if int(sizes.max()) > most:
        raise CorruptMessage(f"a field holds {sizes.max()}; the largest number is {most}")
    return np.where(fields & np.uint32(1), -sizes, sizes), end
