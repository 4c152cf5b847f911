from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import elias as kernels
from mpi_compress.messages.codecs.base import NOTHING, Bytes, Decoded, Known, codecs
from mpi_compress.messages.codecs.fields import count_bytes, float_bytes, read_count, read_scales, readable, within
from mpi_compress.messages.codecs.indexed import IndexCodec
from mpi_compress.messages.kinds import Compressed, Indices, Levels

DENSE, SPARSE = 0, 1


@dataclass(frozen=True)
class Elias(IndexCodec):
    """Index sets as Elias codes of their gaps, and levels as in QSGD's paper (Alistarh et al. 2017, §3.2 and its appendix).

    Levels are a byte for the form, the scales, and the shorter of: the number of nonzero levels and for each the code of the gap
    to it, its sign and the code of its size; or for every coordinate the code of its size + 1, and its sign if it is not 0.
    """

    omega: ClassVar[bool]

    def writes(self, kind: type[Compressed]) -> bool:
        return kind is Levels or super().writes(kind)

    def encode(self, compressed: Compressed) -> Bytes:
        if not isinstance(compressed, Levels):
            return super().encode(compressed)
        levels = compressed.levels
        at, sparse_bits, dense_bits = kernels.levels_lengths(levels, self.omega)
        sparse = sparse_bits < dense_bits
        out = np.empty((min(sparse_bits, dense_bits) + at.size + 7) // 8, dtype=np.uint8)
        if sparse:
            kernels.write_sparse_levels(levels, at, self.omega, out)
        else:
            kernels.write_dense_levels(levels, self.omega, out)
        form = np.array([SPARSE if sparse else DENSE], dtype=np.uint8)
        head = count_bytes(at.size) if sparse else form[:0]
        return np.concatenate([form, float_bytes(compressed.scales, self.float_format), head, out])

    def decode(self, data: Bytes, at: int, dim: int, kind: type[Compressed], known: Known = NOTHING) -> Decoded:
        if kind is not Levels:
            return super().decode(data, at, dim, kind, known)
        if at >= data.size or data[at] > SPARSE:
            raise CorruptMessage(f"byte {at} of {data.size} names no form of levels")
        sparse = data[at] == SPARSE
        scales, bucket, at = read_scales(data, at + 1, dim, known, self.float_format)
        if sparse:
            count, at = read_count(data, at, most=dim)
            levels = np.zeros(dim, dtype=np.int32)
            end = kernels.read_sparse_levels(readable(data), 8 * at, self.omega, count, levels)
        else:
            levels = np.empty(dim, dtype=np.int32)
            end = kernels.read_dense_levels(readable(data), 8 * at, self.omega, levels)
        return Levels(levels, scales, bucket), within((end + 7) // 8 if end >= 0 else end, data)

    def write_set(self, indices: Indices, dim: int, ahead: int = 0) -> Bytes:
        out = np.empty(ahead + self.set_bytes(indices, dim), dtype=np.uint8)
        kernels.write_set(indices, self.omega, out[ahead:])
        return out

    def read_set(self, data: Bytes, at: int, dim: int, count: int) -> tuple[Indices, int]:
        indices = np.empty(count, dtype=np.uint32)
        end = kernels.read_set(data, 8 * at, self.omega, dim, indices)
        if end == kernels.CORRUPT:
            raise CorruptMessage(f"no {count} Elias codes of indices below {dim} from byte {at} of {data.size} on")
        return indices, (end + 7) // 8

    def set_bytes(self, indices: Indices, dim: int) -> int:
        return (kernels.set_length(indices, self.omega) + 7) // 8


@codecs.register("elias-delta")
@dataclass(frozen=True)
class EliasDelta(Elias):
    """Index sets as Elias delta codes of their gaps, and levels likewise."""

    omega = False


@codecs.register("elias-omega")
@dataclass(frozen=True)
class EliasOmega(Elias):
    """Index sets as Elias omega codes of their gaps, and levels likewise: QSGD's "recursive" code."""

    omega = True
