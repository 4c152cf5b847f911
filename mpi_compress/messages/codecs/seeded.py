from dataclasses import replace

import numpy as np

from mpi_compress.messages.codecs.base import Bytes, FieldCodec, Known, codecs
from mpi_compress.messages.codecs.fields import NO_BYTES, Reader, count_bytes, float_bytes
from mpi_compress.messages.kinds import Compressed, Cyclic, Permuted, Projections, Sketch


@codecs.register("seeded")
class Seeded(FieldCodec):
    """A seed of 32 bits, from which the receiver draws what the floats belong to, and the floats:

        Permuted     the seed, the worker's number in seven-bit groups, T floats
        Cyclic       the same
        Sketch       the seed, r·b floats, row by row
        Projections  the seed, m floats
    """

    kinds = (Permuted, Cyclic, Projections, Sketch)

    def encode(self, compressed: Compressed) -> Bytes:
        assert isinstance(compressed, Permuted | Cyclic | Projections | Sketch)
        head = count_bytes(compressed.part) if isinstance(compressed, Permuted | Cyclic) else NO_BYTES
        values = compressed.table.ravel() if isinstance(compressed, Sketch) else compressed.values
        seed = np.array([compressed.seed], dtype="<u4").view(np.uint8)
        return np.concatenate([seed, head, float_bytes(values, self.float_format)])

    def read(self, r: Reader, dim: int, kind: type[Compressed], known: Known) -> Compressed:
        seed = r.whole("<u4", "a seed")
        if kind is Sketch:
            rows, columns = known["rows"], known["columns"]
            return Sketch(dim, r.floats(rows * columns).reshape(rows, columns), seed)
        if kind is Projections:
            return Projections(dim, r.floats(known["m"]), seed)
        parts, copies = known["parts"], known.get("copies", 1)
        part = r.count(most=parts - 1)
        r.room_for(dim * copies // parts, self.float_format.bits, "floats of a worker")
        empty = np.empty(0)
        content = Cyclic(dim, seed, part, parts, copies, empty) if kind is Cyclic else Permuted(dim, seed, part, parts, empty)
        return replace(content, values=r.floats(content.indices.size))
