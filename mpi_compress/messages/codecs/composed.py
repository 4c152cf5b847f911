"""Codecs of messages that hold messages: of blocks, and of coordinates and their values."""

from dataclasses import replace
from typing import Any

import numpy as np

from mpi_compress.messages.codecs.base import FieldCodec, SideInfo, codecs
from mpi_compress.messages.fields import Field, Reader, in_turn, joined
from mpi_compress.messages.kinds import Blocks, Chained, Compressed, Sparse, Vector, no_coordinates, stacked


@codecs.register("blocks")
class BlockByBlock(FieldCodec):
    """The messages of blocks one after the other, each as its own codec writes it, in this codec's floats."""

    kinds = (Blocks,)

    def write(self, c: Any) -> Field:
        codec = codecs[c.codec](self.float)
        return joined(*(codec.write(part) for part in c.parts))

    def read(self, r: Reader, dim: int, kind: Any, known: SideInfo) -> Blocks:
        codec = codecs[known["codec"]](self.float)
        r.room_for(1, 1, "blocks")
        return Blocks(tuple(codec.read(r, size, of, beside) for size, of, beside in known["blocks"]), known["codec"])


@codecs.register("chain")
class CoordinatesThenValues(FieldCodec):
    """The coordinates as their codec writes them without values, then the T values as theirs writes a vector (T,).

    Sparse coordinates are T in seven-bit groups and their set; those drawn from a seed are what `fixed` or `seeded` write before
    the values. T = 0 has no values.
    """

    kinds = (Chained,)

    def write(self, c: Any) -> Field:
        return in_turn([self._write(c[i]) for i in range(c.rows)])

    def _write(self, c: Chained) -> Field:
        of_first, of_then = (codecs[name](self.float) for name in c.codecs)
        placed: Any = c.placed.as_rows()
        if isinstance(placed, Sparse):
            without = replace(placed, values=np.empty(0))
        else:
            without = replace(placed, values=np.empty(0), ends=np.zeros(1, dtype=np.int64))
        first = of_first.write(without)
        return joined(first, of_then.write(c.values.as_rows())) if c.placed.elements else first

    def read(self, r: Reader, dim: int, kind: Any, known: SideInfo) -> Any:
        return stacked([self._read(one, dim, known) for one in r.each()])

    def _read(self, r: Reader, dim: int, known: SideInfo) -> Chained:
        of_first, of_then = (codecs[name](self.float) for name in known["codecs"])
        (makes, beside), (makes_then, beside_then) = known["first"], known["then"]
        placed = of_first.read(_WithoutFloats(r.data, r.at, r.form, r.ends), dim, makes, beside)[0]
        values: Compressed = no_coordinates(0)
        if T := placed.elements:
            values = of_then.read(r, T, makes_then, beside_then(T))[0]
        return Chained(placed, values, known["codecs"], known["scale"](T))


class _WithoutFloats(Reader):
    """Reads a message that was written without its floats, as zeros; what follows it is the values' to check."""

    __slots__ = ()

    def floats(self, ends: Any) -> Vector:
        return np.zeros(int(ends[-1]))

    def room_for(self, ends: Any, least_bits: int, what: str) -> None:
        pass
