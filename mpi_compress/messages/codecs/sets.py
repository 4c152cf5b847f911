"""Codecs of index sets: a bit a coordinate, codes of gaps, and an adaptive range coder."""

from functools import partial
from typing import Any

import numpy as np

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import adaptive, bits, rice
from mpi_compress.messages.codecs.base import Bytes, Known, codecs
from mpi_compress.messages.codecs.indexed import IndexCodec
from mpi_compress.messages.fields import Reader, coded, write_integers
from mpi_compress.messages.kinds import Compressed, Indices


@codecs.register("bitmap")
class Bitmap(IndexCodec):
    """Index sets as d bits, 1 for each index that is in the set."""

    def write_set(self, indices: Indices, dim: int, ahead: int = 0) -> Bytes:
        out = np.zeros(ahead + (dim + 7) // 8, dtype=np.uint8)
        bits.write_bitmap(indices, out[ahead:])
        return out

    def read_set(self, r: Reader, dim: int, indices: Indices) -> None:
        if not bits.read_bitmap(r.take((dim + 7) // 8, "a bitmap"), 0, dim, indices):
            raise CorruptMessage(f"no bitmap of {indices.size} among {dim} indices ends at byte {r.at}")

    def planned_set_bytes(self, T: Any, dim: int) -> Any:
        return (dim + 7) // 8


@codecs.register("rice")
class Rice(IndexCodec):
    """Index sets as Golomb–Rice codes of their gaps: one byte for the parameter k that is best for the set, then the codes."""

    def write_set(self, indices: Indices, dim: int, ahead: int = 0) -> Bytes:
        k, nbits = rice.best_parameter(indices)
        out = np.empty(ahead + 1 + (nbits + 7) // 8, dtype=np.uint8)
        out[ahead] = k
        rice.write_set(indices, np.uint64(k), out[ahead + 1 :])
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

    layout = "entropy"

    def encode(self, compressed: Any) -> Bytes:
        if self.layout in compressed.layouts:
            return np.concatenate([compressed.head(self.float_format), write_integers(compressed.integers)])
        return super().encode(compressed)

    def read(self, r: Reader, dim: int, kind: Any, known: Known) -> Compressed:
        if self.layout in kind.layouts:
            most, made = kind.read_head(r, dim, known)
            return made(r.integers(dim, most))
        return super().read(r, dim, kind, known)

    def write_set(self, indices: Indices, dim: int, ahead: int = 0) -> Bytes:
        if indices.size in (0, dim):
            return np.empty(ahead, dtype=np.uint8)
        return coded(partial(adaptive.write_set, indices, dim), 4 * indices.size, ahead)

    def read_set(self, r: Reader, dim: int, indices: Indices) -> None:
        if indices.size == dim:
            indices[:] = np.arange(dim)
        elif indices.size:
            r.goes_to(adaptive.read_set(r.readable, r.at, dim, indices))
