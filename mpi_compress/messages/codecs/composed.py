"""Codecs of messages that hold messages: of blocks, and of coordinates and their values."""

from dataclasses import replace

import numpy as np

from mpi_compress.messages.codecs.base import Bytes, FieldCodec, IndexCodec, Known, codecs
from mpi_compress.messages.fields import Reader, count_bytes
from mpi_compress.messages.kinds import Blocks, Chained, Compressed, Drawn, Permuted, Sparse, Vector, no_coordinates


@codecs.register("blocks")
class BlockByBlock(FieldCodec):
    """The messages of blocks one after the other, each as its own codec writes it, in this codec's floats."""

    kinds = (Blocks,)

    def encode(self, compressed: Compressed) -> Bytes:
        assert isinstance(compressed, Blocks)
        codec = codecs[compressed.codec](self.float)
        return np.concatenate([codec.encode(part) for part in compressed.parts])

    def read(self, r: Reader, dim: int, kind: type[Compressed], known: Known) -> Blocks:
        codec, parts = codecs[known["codec"]](self.float), []
        r.room_for(1, 1, "blocks")
        for size, of, beside in known["blocks"]:
            part, r.at = codec.decode(r.data, r.at, size, of, beside)
            parts.append(part)
        return Blocks(tuple(parts), known["codec"])


@codecs.register("chain")
class CoordinatesThenValues(FieldCodec):
    """The coordinates as their codec writes them without values, then the T values as theirs writes a vector (T,).

    Sparse coordinates are T in seven-bit groups and their set; those drawn from a seed are what `fixed` or `seeded` write before
    the values. T = 0 has no values.
    """

    kinds = (Chained,)

    def encode(self, compressed: Compressed) -> Bytes:
        assert isinstance(compressed, Chained)
        placed, values = compressed.placed, compressed.values
        of_first, of_then = (codecs[name](self.float) for name in compressed.codecs)
        if isinstance(placed, Sparse):
            assert isinstance(of_first, IndexCodec)
            first = [count_bytes(placed.elements), of_first.write_set(placed.indices, placed.dim)]
        else:
            first = [of_first.encode(replace(placed, values=np.empty(0)))]
        return np.concatenate([*first, of_then.encode(values)] if placed.elements else first)

    def read(self, r: Reader, dim: int, kind: type[Compressed], known: Known) -> Chained:
        of_first, of_then = (codecs[name](self.float) for name in known["codecs"])
        assert isinstance(of_first, FieldCodec)
        (makes, beside), (makes_then, beside_then) = known["first"], known["then"]
        without = _WithoutFloats(r.data, r.at, r.form)
        placed, r.at = of_first.read(without, dim, makes, beside), without.at
        assert isinstance(placed, Sparse | Drawn | Permuted)
        values: Compressed = no_coordinates(0)
        if T := placed.elements:
            values, r.at = of_then.decode(r.data, r.at, T, makes_then, beside_then(T))
        return Chained(placed, values, known["codecs"], known["scale"](T))


class _WithoutFloats(Reader):
    """Reads a message that was written without its floats, as zeros; what follows it is the values' to check."""

    __slots__ = ()

    def floats(self, count: int) -> Vector:
        return np.zeros(count)

    def room_for(self, count: int, least_bits: float, what: str) -> None:
        pass
