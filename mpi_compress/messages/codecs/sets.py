"""Codecs of index sets: a bit a coordinate, and codes of gaps."""

from typing import Any

import numpy as np

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import bits
from mpi_compress.kernels import rice as kernels
from mpi_compress.messages.codecs.base import Bytes, codecs
from mpi_compress.messages.codecs.indexed import IndexCodec
from mpi_compress.messages.fields import Reader
from mpi_compress.messages.kinds import Indices


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
        k, nbits = kernels.best_parameter(indices)
        out = np.empty(ahead + 1 + (nbits + 7) // 8, dtype=np.uint8)
        out[ahead] = k
        kernels.write_set(indices, np.uint64(k), out[ahead + 1 :])
        return out

    def read_set(self, r: Reader, dim: int, indices: Indices) -> None:
        k = np.uint64(r.byte(31, "Rice parameter"))
        r.goes_to_bit(kernels.read_set(r.readable, 8 * r.at, k, dim, indices))

    def set_bytes(self, indices: Indices, dim: int) -> int:
        return 1 + (kernels.best_parameter(indices)[1] + 7) // 8
