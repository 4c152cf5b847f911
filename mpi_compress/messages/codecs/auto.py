"""The codec that tries others."""

from functools import cached_property
from typing import Literal, cast

import numpy as np

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.messages.codecs.base import Bytes, FieldCodec, IndexCodec, Known, codecs
from mpi_compress.messages.fields import Reader, one_byte
from mpi_compress.messages.kinds import Compressed, Dense, SignSparse, Sparse

QUICK = ("fixed", "bitmap", "rice")
CHOICES = (  # a message's first byte is the place in this list: append only
    "dense", *QUICK, "elias-delta", "elias-omega", "entropy", "ternary", "gspar-hybrid", "lattice",
    "packed", "seeded", "blocks", "chain", "eigenpairs",
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
    def choices(self) -> tuple[FieldCodec, ...]:
        """The codecs of `CHOICES`, with this codec's floats."""
        return tuple(cast(FieldCodec, codecs[name](self.float)) for name in CHOICES)

    @cached_property
    def tried(self) -> dict[int, IndexCodec]:
        """The codecs that are tried for a sparse vector, by their places."""
        wanted = QUICK if self.search == "quick" else CHOICES
        return {i: codec for i, codec in enumerate(self.choices) if isinstance(codec, IndexCodec) and codec.name in wanted}

    def writes(self, kind: type[Compressed]) -> bool:
        return any(codec.writes(kind) for codec in self.choices)

    def encode(self, compressed: Compressed) -> Bytes:
        if isinstance(compressed, Sparse | SignSparse):
            best = self._by_set(compressed)
            message = self.choices[best].encode(compressed)
        else:
            messages = {i: codec.encode(compressed) for i, codec in enumerate(self.choices) if codec.writes(type(compressed))}
            best, message = min(messages.items(), key=lambda item: item[1].size)
        return np.concatenate([one_byte(best), message])

    def _by_set(self, c: Sparse | SignSparse) -> int:
        """The place of the codec with the shortest index set (the rest is the same for all), or of `dense` if that is shorter."""
        least, best = min((codec.set_bytes(c.indices, c.dim), place) for place, codec in self.tried.items())
        dense = isinstance(c, Sparse) and c.dim * self.float_format.nbytes <= c.elements * self.float_format.nbytes + least
        return DENSE if dense else best

    def read(self, r: Reader, dim: int, kind: type[Compressed], known: Known) -> Compressed:
        place = r.byte(len(CHOICES) - 1, "codec")
        codec = self.choices[place]
        if kind in (Sparse, Dense):  # either may come from a compressor that passes on what it is given
            kind = Dense if place == DENSE else Sparse
        if not codec.writes(kind):
            raise CorruptMessage(f"'{codec.name}' writes no such messages")
        return codec.read(r, dim, kind, known)
