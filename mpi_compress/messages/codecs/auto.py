"""The codec that tries others."""

from functools import cache, cached_property
from typing import Any, Literal

import numpy as np

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import sets
from mpi_compress.kernels.vectors import lengths_of
from mpi_compress.messages.codecs.base import FieldCodec, SideInfo, codecs, read_by, write_by
from mpi_compress.messages.fields import Field, Numbers, Reader, in_turn, joined, one_byte
from mpi_compress.messages.kinds import Compressed, Dense, Each, SignSparse, Sparse

QUICK = ("fixed", "bitmap", "rice")
SETS = (*QUICK, "elias-delta", "elias-omega", "entropy")  # in the order of their ways, `kernels.sets`
CHOICES = (  # a message's first byte is the place in this list: append only
    "dense", *SETS, "ternary", "gspar-hybrid", "lattice", "packed", "seeded", "blocks", "chain", "eigenpairs",
)  # fmt: skip
DENSE = CHOICES.index("dense")


@codecs.register("auto")
class Auto(FieldCodec):
    """The shortest message that any codec writes; its first byte says which codec.

    A sparse vector may be written dense. Where dense vectors are expected, sparse ones may come, such as a mean of sparse vectors.
    `search = "quick"` does not try Elias' codes and the entropy coder for sparse vectors: they take time and, where values are
    sent too, gain little.
    """

    search: Literal["full", "quick"] = "full"  # "quick": no Elias codes and no entropy coder are tried for sparse vectors

    @cached_property
    def choices(self) -> tuple[Any, ...]:
        """The codecs of `CHOICES`, with this codec's floats."""
        return tuple(codecs[name](self.float) for name in CHOICES)

    def writes(self, kind: type[Compressed]) -> bool:
        return any(codec.writes(kind) for codec in self.choices)

    def write(self, c: Any) -> Field:
        if isinstance(c, Each) and c.rows > 1:
            return in_turn([self.write(part.as_rows()) for part in c.parts])
        best = self._by_set(c) if isinstance(c, Sparse | SignSparse) else self._by_length(c)
        return joined(one_byte(best), write_by(best, c, lambda rows, place: self.choices[place].write(rows)))

    def _by_set(self, c: Sparse | SignSparse) -> Numbers:
        """The places (m,) of the codecs with the shortest index sets (the rest is the same for all), or of `dense` where that is
        shorter."""
        best, ways = np.empty_like(c.ends), sets.QUICK if self.search == "quick" else sets.ALL
        sets.shortest(ways, c.indices, c.ends, c.dim, self.float_format.nbytes * (type(c) is Sparse), best)
        return best

    def _by_length(self, c: Compressed) -> Numbers:
        """The places (m,) of the codecs with the shortest messages."""
        if isinstance(c, Dense):
            return np.full(len(c), DENSE)
        able = _able(self, type(c.parts[0] if isinstance(c, Each) else c))
        lengths = [lengths_of(self.choices[place].write(c)[1]) for place in able]
        return np.array(able)[np.argmin(lengths, axis=0)]

    def read(self, r: Reader, dim: int, kind: Any, known: SideInfo) -> Any:
        return read_by(r.bytes(len(CHOICES) - 1, "codec"), r, lambda rows, place: self._read(rows, place, dim, kind, known))

    def _read(self, r: Reader, place: int, dim: int, kind: Any, known: SideInfo) -> Any:
        codec = self.choices[place]
        if kind in (Sparse, Dense):  # either may come from a compressor that passes on what it is given
            kind = Dense if place == DENSE else Sparse
        if not codec.writes(kind):
            raise CorruptMessage(f"'{codec.name}' writes no such messages")
        return codec.read(r, dim, kind, known)


@cache
def _able(auto: Auto, kind: type[Compressed]) -> list[int]:
    """The places of the codecs that write such vectors."""
    return [place for place, codec in enumerate(auto.choices) if codec.writes(kind)]
