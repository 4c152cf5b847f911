from dataclasses import dataclass

import numpy as np

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.messages.codecs.base import NOTHING, Bytes, Codec, Decoded, Known, codecs
from mpi_compress.messages.codecs.fields import count_bytes, float_bytes, read_count, read_floats
from mpi_compress.messages.kinds import Compressed, Permuted, Sketch

_SEED_BYTES = 4


@codecs.register("seeded")
@dataclass(frozen=True)
class Seeded(Codec):
    """A seed of 32 bits, from which the receiver draws what the floats belong to, and the floats:

        Permuted   the seed, the worker's number in seven-bit groups, T floats
        Sketch     the seed, r·b floats, row by row
    """

    def writes(self, kind: type[Compressed]) -> bool:
        return kind in (Permuted, Sketch)

    def encode(self, compressed: Compressed) -> Bytes:
        if isinstance(compressed, Permuted):
            head, values = count_bytes(compressed.part), compressed.values
        else:
            assert isinstance(compressed, Sketch)
            head, values = np.empty(0, dtype=np.uint8), compressed.table.ravel()
        seed = np.array([compressed.seed], dtype="<u4").view(np.uint8)
        return np.concatenate([seed, head, float_bytes(values, self.float_format)])

    def decode(self, data: Bytes, at: int, dim: int, kind: type[Compressed], known: Known = NOTHING) -> Decoded:
        if at + _SEED_BYTES > data.size:
            raise CorruptMessage(f"a seed needs {_SEED_BYTES} bytes; there are {data.size - at}")
        seed, at = int(data[at : at + _SEED_BYTES].view("<u4")[0]), at + _SEED_BYTES
        if kind is Sketch:
            rows, columns = known["rows"], known["columns"]
            table, end = read_floats(data, at, rows * columns, self.float_format)
            return Sketch(dim, table.reshape(rows, columns), seed), end
        part, at = read_count(data, at, most=known["parts"] - 1)
        count = Permuted(dim, seed, part, known["parts"], np.empty(0)).indices.size
        values, end = read_floats(data, at, count, self.float_format)
        return Permuted(dim, seed, part, known["parts"], values), end
