import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import bits
from mpi_compress.messages.codecs.base import Bytes, FieldCodec, Known, codecs
from mpi_compress.messages.codecs.fields import Reader, float_bytes, read_exponent, sign_bytes
from mpi_compress.messages.kinds import BlockSigns, Compressed, Dithered, Powers
from mpi_compress.messages.kinds.grids import largest_power

NOT_FINITE = 255  # the width of a vector that is not finite


@codecs.register("packed")
class Packed(FieldCodec):
    """A sign of one bit for every coordinate, and for some kinds a whole number of fixed width:

        BlockSigns   a float for each block, d signs
        Dithered     a float, d signs with ⌈log2(s + 1)⌉ bits each
        Powers       the width w in a byte, the least exponent in two, d signs with w bits each; w holds the vector's own range of
                     exponents, so that it is mostly below the 8 or 11 bits that the paper counts. w = 0: all are 0
    """

    kinds = (BlockSigns, Dithered, Powers)

    def encode(self, compressed: Compressed) -> Bytes:
        if isinstance(compressed, BlockSigns):
            return np.concatenate([float_bytes(compressed.scales, self.float_format), sign_bytes(compressed.negative)])
        if isinstance(compressed, Dithered):
            numbers = signed_fields(compressed.levels, compressed.most.bit_length())
            return np.concatenate([float_bytes(compressed.steps, self.float_format), numbers])
        assert isinstance(compressed, Powers)
        width = int(np.max(np.abs(compressed.integers))).bit_length() if compressed.finite else NOT_FINITE
        if width in (0, NOT_FINITE):
            return np.array([width], dtype=np.uint8)
        least = np.array([compressed.least], dtype="<i2").view(np.uint8)
        return np.concatenate([np.array([width], dtype=np.uint8), least, signed_fields(compressed.integers, width)])

    def read(self, r: Reader, dim: int, kind: type[Compressed], known: Known) -> Compressed:
        if kind is BlockSigns:
            scales = r.floats(-(-dim // known["block"]))
            return BlockSigns(r.signs(dim), scales, known["block"])
        if kind is Dithered:
            steps, most = r.floats(1), known["most"]
            return Dithered.on_grid(read_signed_fields(r, dim, most.bit_length(), most), steps, known)
        width, fraction = r.byte(NOT_FINITE, "width of fields"), known["fraction"]
        if width in (0, NOT_FINITE):
            return Powers(np.zeros(dim, dtype=np.int32), 0, fraction, finite=width == 0)
        if width > 31:
            raise CorruptMessage(f"{width} bits are no width of fields")
        least = read_exponent(r)
        return Powers(read_signed_fields(r, dim, width, largest_power(least, fraction)), least, fraction)


def signed_fields(integers: NDArray[np.signedinteger], width: int) -> Bytes:
    """Integers (d,) below 2^width ≤ 2³¹ in size, with their signs as the lowest bits."""
    fields = np.abs(integers).astype(np.uint32) << np.uint32(1) | (integers < 0)
    out = np.empty((integers.size * (width + 1) + 7) // 8, dtype=np.uint8)
    bits.pack_fields(fields, width + 1, out, 0)
    return out


def read_signed_fields(r: Reader, dim: int, width: int, most: int) -> NDArray[np.int32]:
    """`dim` integers that `signed_fields` wrote, up to `most` in size."""
    start = r.at
    r.take((dim * (width + 1) + 7) // 8, "an array of fields")
    fields = np.empty(dim, dtype=np.uint32)
    bits.read_fields(r.readable, start, width + 1, 0, fields)
    sizes = (fields >> np.uint32(1)).astype(np.int32)
    if int(sizes.max()) > most:
        raise CorruptMessage(f"a field holds {sizes.max()}; the largest number is {most}")
    return np.where(fields & np.uint32(1), -sizes, sizes)
