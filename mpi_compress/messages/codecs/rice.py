from dataclasses import dataclass

import numpy as np

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import rice as kernels
from mpi_compress.messages.codecs.base import Bytes, codecs
from mpi_compress.messages.codecs.indexed import IndexCodec
from mpi_compress.messages.kinds import Indices


@codecs.register("rice")
@dataclass(frozen=True)
class Rice(IndexCodec):
    """Index sets as Golomb–Rice codes of their gaps: one byte for the parameter k that is best for the set, then the codes."""

    def write_set(self, indices: Indices, dim: int, ahead: int = 0) -> Bytes:
        k, nbits = kernels.best_parameter(indices)
        out = np.empty(ahead + 1 + (nbits + 7) // 8, dtype=np.uint8)
        out[ahead] = k
        kernels.write_set(indices, np.uint64(k), out[ahead + 1 :])
        return out

    def read_set(self, data: Bytes, at: int, dim: int, count: int) -> tuple[Indices, int]:
        if at >= data.size or (k := data.item(at)) > 31:
            raise CorruptMessage(f"no Rice parameter stands at byte {at} of {data.size}")
        indices = np.empty(count, dtype=np.uint32)
        end = kernels.read_set(data, 8 * (at + 1), np.uint64(k), dim, indices)
        if end == kernels.CORRUPT:
            raise CorruptMessage(f"no {count} Rice codes of indices below {dim} from byte {at} of {data.size} on")
        return indices, (end + 7) // 8

    def set_bytes(self, indices: Indices, dim: int) -> int:
        return 1 + (kernels.best_parameter(indices)[1] + 7) // 8
