from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mpi_compress.kernels import elias as kernels
from mpi_compress.messages.codecs.base import Bytes, Known, codecs
from mpi_compress.messages.codecs.indexed import IndexCodec
from mpi_compress.messages.fields import NO_BYTES, Reader, count_bytes, float_bytes
from mpi_compress.messages.kinds import Compressed, Indices, Levels

DENSE, SPARSE = 0, 1


@dataclass(frozen=True)
class Elias(IndexCodec):
    """Index sets as Elias codes of their gaps, and levels as in QSGD's paper (Alistarh et al. 2017, §3.2 and its appendix). Levels
    are a byte for the form, the scales, and the shorter of: the number of nonzero levels and for each the code of the gap to it,
    its sign and the code of its size; or for every coordinate the code of its size + 1, and its sign if it is not 0."""

    omega: ClassVar[bool]
    kinds = (*IndexCodec.kinds, Levels)

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
        head = count_bytes(at.size) if sparse else NO_BYTES
        return np.concatenate([form, float_bytes(compressed.scales, self.float_format), head, out])

    def read(self, r: Reader, dim: int, kind: type[Compressed], known: Known) -> Compressed:
        if kind is not Levels:
            return super().read(r, dim, kind, known)
        form = r.byte(SPARSE, "form of levels")
        scales = r.floats(-(-dim // Levels.known_grid(dim, known)[0]))
        count = r.count(most=dim) if form == SPARSE else dim
        r.room_for(count, 1, "levels")
        levels = np.zeros(dim, dtype=np.int32)
        if form == SPARSE:
            r.goes_to_bit(kernels.read_sparse_levels(r.readable, 8 * r.at, self.omega, count, levels))
        else:
            r.goes_to_bit(kernels.read_dense_levels(r.readable, 8 * r.at, self.omega, levels))
        return Levels.on_grid(levels, scales, known)

    def write_set(self, indices: Indices, dim: int, ahead: int = 0) -> Bytes:
        out = np.empty(ahead + self.set_bytes(indices, dim), dtype=np.uint8)
        kernels.write_set(indices, self.omega, out[ahead:])
        return out

    def read_set(self, r: Reader, dim: int, indices: Indices) -> None:
        r.goes_to_bit(kernels.read_set(r.readable, 8 * r.at, self.omega, dim, indices))

    def set_bytes(self, indices: Indices, dim: int) -> int:
        return (kernels.set_length(indices, self.omega) + 7) // 8


@codecs.register("elias-delta")
class EliasDelta(Elias):
    """Index sets as Elias delta codes of their gaps, and levels likewise."""

    omega = False


@codecs.register("elias-omega")
class EliasOmega(Elias):
    """Index sets as Elias omega codes of their gaps, and levels likewise: QSGD's "recursive" code."""

    omega = True
