"""Codecs of index sets, and of levels or other integers: a bit a coordinate, codes of gaps, and an adaptive range coder."""

from typing import Any

import numpy as np

from mpi_compress.kernels import elias, sets
from mpi_compress.messages import fields
from mpi_compress.messages.codecs.base import INDEXED, IndexCodec, SideInfo, codecs
from mpi_compress.messages.fields import Field, Reader
from mpi_compress.messages.kinds import Levels


@codecs.register("bitmap")
class Bitmap(IndexCodec):
    """Index sets as d bits, 1 for each index that is in the set."""

    kinds, way = INDEXED, sets.BITMAP

    def planned_set_bytes(self, T: Any, dim: int) -> Any:
        return (dim + 7) // 8


@codecs.register("rice")
class Rice(IndexCodec):
    """Index sets as Golomb–Rice codes of their gaps: one byte for the parameter k that is best for the set, then the codes."""

    kinds, way = INDEXED, sets.RICE


@codecs.register("entropy")
class Entropy(IndexCodec):
    """Index sets, levels, signs and powers by an adaptive range coder, close to their entropy or, where they are uneven, below it.

    The initial chances are those of a uniformly random set, for integers even ones. They adapt to the gaps, or integers, before.
    """

    kinds, way = INDEXED, sets.ENTROPY

    def write(self, c: Any) -> Field:
        if "entropy" in c.layouts:
            return fields.joined(c.head(self.float_format), fields.integers(c.integers))
        return super().write(c)

    def read(self, r: Reader, dim: int, kind: Any, known: SideInfo) -> Any:
        if "entropy" in kind.layouts:
            most, made = kind.read_head(r, dim, known)
            return made(r.integers(dim, most))
        return super().read(r, dim, kind, known)


class Elias(IndexCodec):
    """Index sets as Elias codes of their gaps, and levels as in QSGD's paper (Alistarh et al. 2017, §3.2 and its appendix). Levels
    are a byte for the form, the scales, and the shorter of: the number of nonzero levels and for each the code of the gap to it,
    its sign and the code of its size; or for every coordinate the code of its size + 1, and its sign if it is not 0."""

    kinds = (*INDEXED, Levels)

    def write(self, c: Any) -> Field:
        if type(c) is not Levels:
            return super().write(c)
        forms, ends = np.empty(len(c), dtype=np.int64), np.empty(len(c), dtype=np.int64)
        written = elias.put_levels(c.levels, self.way == sets.OMEGA, forms, ends)
        return fields.joined(fields.one_byte(forms), c.head(self.float_format), (written, ends))

    def read(self, r: Reader, dim: int, kind: Any, known: SideInfo) -> Any:
        if kind is not Levels:
            return super().read(r, dim, kind, known)
        forms, (_, made) = r.bytes(elias.SPARSE, "form of levels"), Levels.read_head(r, dim, known)
        levels = np.zeros((forms.size, dim), dtype=np.int32)
        r.refuse(elias.take_levels(r.data, r.at, r.ends, forms, self.way == sets.OMEGA, levels), f"an array of {dim} levels")
        return made(levels)


@codecs.register("elias-delta")
class EliasDelta(Elias):
    """Index sets as Elias delta codes of their gaps, and levels likewise."""

    way = sets.DELTA


@codecs.register("elias-omega")
class EliasOmega(Elias):
    """Index sets as Elias omega codes of their gaps, and levels likewise: QSGD's "recursive" code."""

    way = sets.OMEGA
