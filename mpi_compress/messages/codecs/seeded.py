import numpy as np

from mpi_compress.messages.codecs.base import Bytes, FieldCodec, Known, codecs
from mpi_compress.messages.codecs.fields import NO_BYTES, Reader, count_bytes, float_bytes
from mpi_compress.messages.kinds import Compressed, Permuted, Projections, Sketch


@codecs.register("seeded")
class Seeded(FieldCodec):
    """A seed of 32 bits, from which the receiver draws what the floats belong to, and the floats:

        Permuted     the seed, the worker's number in seven-bit groups, T floats
        Sketch       the seed, r·b floats, row by row
        Projections  the seed, m floats
    """

    kinds = (Permuted, Projections, Sketch)

    def encode(self, compressed: Compressed) -> Bytes:
        assert isinstance(compressed, Permuted | Projections | Sketch)
        head = count_bytes(compressed.part) if isinstance(compressed, Permuted) else NO_BYTES
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
        part = r.count(most=known["parts"] - 1)
        r.room_for(dim // known["parts"], self.float_format.bits, "floats of a block")
        count = Permuted(dim, seed, part, known["parts"], np.empty(0)).indices.size
        return Permuted(dim, seed, part, known["parts"], r.floats(count))
