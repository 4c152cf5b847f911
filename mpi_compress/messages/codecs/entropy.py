from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mpi_compress.kernels import adaptive as kernels
from mpi_compress.messages.codecs import fields
from mpi_compress.messages.codecs.base import NOTHING, Bytes, Decoded, Known, codecs
from mpi_compress.messages.codecs.indexed import IndexCodec
from mpi_compress.messages.kinds import Compressed, Indices, Levels, Ternary


@codecs.register("entropy")
@dataclass(frozen=True)
class Entropy(IndexCodec):
    """Index sets, levels and signs by an adaptive range coder, close to their entropy or, where they are uneven, below it.

    The initial chances are those of a uniformly random set, for integers even ones. They adapt to the gaps, or integers, before.
    """

    def writes(self, kind: type[Compressed]) -> bool:
        return kind in (Levels, Ternary) or super().writes(kind)

    def encode(self, compressed: Compressed) -> Bytes:
        if isinstance(compressed, Levels):
            scales = fields.float_bytes(compressed.scales, self.float_format)
            return np.concatenate([scales, fields.write_integers(compressed.levels)])
        if isinstance(compressed, Ternary):
            magnitude = fields.number_bytes(compressed.magnitude, self.float_format)
            return np.concatenate([magnitude, fields.write_integers(compressed.signs)])
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
        return super().decode(data, at, dim, kind, known)

    def write_set(self, indices: Indices, dim: int, ahead: int = 0) -> Bytes:
        if indices.size in (0, dim):
            return np.empty(ahead, dtype=np.uint8)
        return fields.coded(partial(kernels.write_set, indices, dim), 4 * indices.size, ahead)

    def read_set(self, data: Bytes, at: int, dim: int, count: int) -> tuple[Indices, int]:
        if count in (0, dim):
            return np.arange(count, dtype=np.uint32), at
        indices = np.empty(count, dtype=np.uint32)
        return indices, fields.within(kernels.read_set(data, at, dim, indices), data)
