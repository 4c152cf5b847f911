from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import adaptive as kernels
from mpi_compress.messages.codecs import fields
from mpi_compress.messages.codecs.base import NOTHING, Bytes, Decoded, Known, codecs
from mpi_compress.messages.codecs.indexed import IndexCodec
from mpi_compress.messages.kinds import Compressed, Dithered, Indices, Levels, Powers, Ternary
from mpi_compress.messages.kinds.powers import LEAST, MOST

_NOT_FINITE = -(2**15)  # in place of an exponent


@codecs.register("entropy")
@dataclass(frozen=True)
class Entropy(IndexCodec):
    """Index sets, levels, signs and powers by an adaptive range coder, close to their entropy or, where they are uneven, below it.

    The initial chances are those of a uniformly random set, for integers even ones. They adapt to the gaps, or integers, before.
    """

    def writes(self, kind: type[Compressed]) -> bool:
        return kind in (Levels, Ternary, Dithered, Powers) or super().writes(kind)

    def encode(self, compressed: Compressed) -> Bytes:
        if isinstance(compressed, Levels):
            scales = fields.float_bytes(compressed.scales, self.float_format)
            return np.concatenate([scales, fields.write_integers(compressed.levels)])
        if isinstance(compressed, Ternary):
            magnitude = fields.number_bytes(compressed.magnitude, self.float_format)
            return np.concatenate([magnitude, fields.write_integers(compressed.signs)])
        if isinstance(compressed, Dithered):
            scale = fields.number_bytes(compressed.scale, self.float_format)
            return np.concatenate([scale, fields.write_integers(compressed.levels)])
        if isinstance(compressed, Powers):
            least = np.array([compressed.least if compressed.finite else _NOT_FINITE], dtype="<i2").view(np.uint8)
            return np.concatenate([least, fields.write_integers(compressed.integers)])
        return super().encode(compressed)

    def decode(self, data: Bytes, at: int, dim: int, kind: type[Compressed], known: Known = NOTHING) -> Decoded:
        if kind is Levels:
            scales, bucket, at = fields.read_scales(data, at, dim, known, self.float_format)
            levels: NDArray[np.int32] = np.empty(dim, dtype=np.int32)
            return Levels(levels, scales, bucket), fields.read_integers(data, at, levels, longest=31)
        if kind is Ternary:
            magnitude, at = fields.read_number(data, at, self.float_format)
            signs: NDArray[np.int8] = np.empty(dim, dtype=np.int8)
            return Ternary(signs, magnitude), fields.read_integers(data, at, signs, longest=1)
        if kind is Dithered:
            scale, at = fields.read_number(data, at, self.float_format)
            integers, at = _bounded(data, at, dim, known["most"])
            return Dithered(integers.astype(np.int8) if known["most"] < 128 else integers, scale, known["most"]), at
        return self._powers(data, at, dim, known["fraction"]) if kind is Powers else super().decode(data, at, dim, kind, known)

    def _powers(self, data: Bytes, at: int, dim: int, fraction: int) -> Decoded:
        if at + 2 > data.size:
            raise CorruptMessage(f"an exponent ends at byte {at + 2}; there are {data.size}")
        least = int(data[at : at + 2].view("<i2")[0])
        if not (LEAST <= least <= MOST or least == _NOT_FINITE):
            raise CorruptMessage(f"2^{least} is no float")
        finite = least != _NOT_FINITE
        integers, end = _bounded(data, at + 2, dim, (MOST + 1 - least) << fraction if finite else 0)
        return Powers(integers, least if finite else 0, fraction, finite), end

    def write_set(self, indices: Indices, dim: int, ahead: int = 0) -> Bytes:
        if indices.size in (0, dim):
            return np.empty(ahead, dtype=np.uint8)
        return fields.coded(partial(kernels.write_set, indices, dim), 4 * indices.size, ahead)

    def read_set(self, data: Bytes, at: int, dim: int, count: int) -> tuple[Indices, int]:
        if count in (0, dim):
            return np.arange(count, dtype=np.uint32), at
        indices = np.empty(count, dtype=np.uint32)
        return indices, fields.within(kernels.read_set(data, at, dim, indices), data)


def _bounded(data: Bytes, at: int, dim: int, most: int) -> tuple[NDArray[np.int32], int]:
    """`dim` integers from data[at] on, up to `most` in size, and where they end."""
    integers: NDArray[np.int32] = np.empty(dim, dtype=np.int32)
    end = fields.read_integers(data, at, integers, longest=most.bit_length())
    if int(np.max(np.abs(integers.astype(np.int64)))) > most:
        raise CorruptMessage(f"an integer is beyond {most} in size")
    return integers, end
