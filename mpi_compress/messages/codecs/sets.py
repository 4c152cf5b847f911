"""Codecs of index sets, and of levels or other integers: a bit a coordinate, codes of gaps, and an adaptive range coder."""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import adaptive, rice
from mpi_compress.kernels import elias as kernels
from mpi_compress.messages.codecs.base import INDEXED, Bytes, IndexCodec, Known, codecs
from mpi_compress.messages.fields import NO_BYTES, Reader, coded, count_bytes, float_bytes, one_byte, write_integers
from mpi_compress.messages.kinds import Compressed, Indices, Levels


@codecs.register("bitmap")
class Bitmap(IndexCodec):
    """Index sets as d bits, 1 for each index that is in the set."""

    kinds = INDEXED

    def write_set(self, indices: Indices, dim: int) -> Bytes:
        held = np.zeros(dim, dtype=np.bool_)
        held[indices] = True
        return np.packbits(held, bitorder="little")

    def read_set(self, r: Reader, dim: int, indices: Indices) -> None:
        found = np.flatnonzero(np.unpackbits(r.take((dim + 7) // 8, "a bitmap"), bitorder="little").view(np.bool_))
        if found.size != indices.size or (found.size and found[-1] >= dim):
            raise CorruptMessage(f"no bitmap of {indices.size} among {dim} indices ends at byte {r.at}")
        indices[:] = found

    def planned_set_bytes(self, T: Any, dim: int) -> Any:
        return (dim + 7) // 8


@codecs.register("rice")
class Rice(IndexCodec):
    """Index sets as Golomb–Rice codes of their gaps: one byte for the parameter k that is best for the set, then the codes."""

    kinds = INDEXED

    def write_set(self, indices: Indices, dim: int) -> Bytes:
        k, nbits = rice.best_parameter(indices)
        out = np.empty(1 + (nbits + 7) // 8, dtype=np.uint8)
        out[0] = k
        rice.write_set(indices, np.uint64(k), out[1:])
        return out

    def read_set(self, r: Reader, dim: int, indices: Indices) -> None:
        k = np.uint64(r.byte(31, "Rice parameter"))
        r.goes_to_bit(rice.read_set(r.readable, 8 * r.at, k, dim, indices))

    def set_bytes(self, indices: Indices, dim: int) -> int:
        return 1 + (rice.best_parameter(indices)[1] + 7) // 8


@codecs.register("entropy")
class Entropy(IndexCodec):
    """Index sets, levels, signs and powers by an adaptive range coder, close to their entropy or, where they are uneven, below it.

    The initial chances are those of a uniformly random set, for integers even ones. They adapt to the gaps, or integers, before.
    """

    kinds = INDEXED

    def encode(self, compressed: Any) -> Bytes:
        if "entropy" in compressed.layouts:
            return np.concatenate([compressed.head(self.float_format), write_integers(compressed.integers)])
        return super().encode(compressed)

    def read(self, r: Reader, dim: int, kind: Any, known: Known) -> Compressed:
        if "entropy" in kind.layouts:
            most, made = kind.read_head(r, dim, known)
            return made(r.integers(dim, most))
        return super().read(r, dim, kind, known)

    def write_set(self, indices: Indices, dim: int) -> Bytes:
        if indices.size in (0, dim):
            return NO_BYTES
        return coded(partial(adaptive.write_set, indices, dim), 4 * indices.size)

    def read_set(self, r: Reader, dim: int, indices: Indices) -> None:
        if indices.size == dim:
            indices[:] = np.arange(dim)
        elif indices.size:
            r.goes_to(adaptive.read_set(r.readable, r.at, dim, indices))


DENSE, SPARSE = 0, 1
NO_LEVELS = np.empty(0, dtype=np.int32)


@dataclass(frozen=True)
class Elias(IndexCodec):
    """Index sets as Elias codes of their gaps, and levels as in QSGD's paper (Alistarh et al. 2017, §3.2 and its appendix). Levels
    are a byte for the form, the scales, and the shorter of: the number of nonzero levels and for each the code of the gap to it,
    its sign and the code of its size; or for every coordinate the code of its size + 1, and its sign if it is not 0."""

    omega: ClassVar[bool]
    kinds = (*INDEXED, Levels)

    def encode(self, compressed: Compressed) -> Bytes:
        if not isinstance(compressed, Levels):
            return super().encode(compressed)
        levels = compressed.levels
        at, sparse_bits, dense_bits = kernels.levels_lengths(levels, self.omega)
        sparse = sparse_bits < dense_bits
        out = np.empty((min(sparse_bits, dense_bits) + at.size + 7) // 8, dtype=np.uint8)
        if sparse:
            kernels.write_set(at, levels, self.omega, out)
        else:
            kernels.write_dense_levels(levels, self.omega, out)
        form = one_byte(SPARSE if sparse else DENSE)
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
            at = np.empty(count, dtype=np.uint32)
            r.goes_to_bit(kernels.read_set(r.readable, 8 * r.at, self.omega, dim, at, levels))
        else:
            r.goes_to_bit(kernels.read_dense_levels(r.readable, 8 * r.at, self.omega, levels))
        return Levels.on_grid(levels, scales, known)

    def write_set(self, indices: Indices, dim: int) -> Bytes:
        out = np.empty(self.set_bytes(indices, dim), dtype=np.uint8)
        kernels.write_set(indices, NO_LEVELS, self.omega, out)
        return out

    def read_set(self, r: Reader, dim: int, indices: Indices) -> None:
        r.goes_to_bit(kernels.read_set(r.readable, 8 * r.at, self.omega, dim, indices, NO_LEVELS))

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
