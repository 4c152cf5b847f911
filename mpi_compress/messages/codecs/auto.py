from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.messages.codecs.base import NOTHING, Bytes, Codec, codecs
from mpi_compress.messages.codecs.bitmap import Bitmap
from mpi_compress.messages.codecs.dense import DenseFloats
from mpi_compress.messages.codecs.elias import EliasDelta, EliasOmega
from mpi_compress.messages.codecs.entropy import Entropy
from mpi_compress.messages.codecs.fixed import Fixed
from mpi_compress.messages.codecs.gspar_hybrid import GSparHybrid
from mpi_compress.messages.codecs.indexed import IndexCodec
from mpi_compress.messages.codecs.lattice import LatticePoints
from mpi_compress.messages.codecs.rice import Rice
from mpi_compress.messages.codecs.ternary import TernaryDigits
from mpi_compress.messages.kinds import Compressed, Dense, SignSparse, Sparse

CHOICES: tuple[type[Codec], ...] = (  # a message's first byte is the place in this list: append only
    DenseFloats, Fixed, Bitmap, Rice, EliasDelta, EliasOmega, Entropy, TernaryDigits, GSparHybrid, LatticePoints,
)  # fmt: skip
QUICK: tuple[type[IndexCodec], ...] = (Fixed, Bitmap, Rice)
SETS: tuple[type[IndexCodec], ...] = (*QUICK, EliasDelta, EliasOmega, Entropy)
_FIRST = {choice: np.array([place], dtype=np.uint8) for place, choice in enumerate(CHOICES)}


@codecs.register("auto")
@dataclass(frozen=True)
class Auto(Codec):
    """For each message the shortest that any codec makes of it; one byte ahead says which.

    A sparse vector may also be written dense, and where dense ones are expected sparse ones may come: a mean of sparse vectors.
    `search = "quick"` leaves out, for sparse vectors, codes that take time and gain little where values are sent along: Elias'
    and the entropy coder's.
    """

    tells_kind = True

    search: Literal["full", "quick"] = "full"

    @cached_property
    def choices(self) -> tuple[Codec, ...]:
        """`CHOICES` with this codec's floats."""
        return tuple(choice(self.float) for choice in CHOICES)

    @cached_property
    def tried(self) -> tuple[IndexCodec, ...]:
        """Those that compete for a sparse vector."""
        return tuple(choice(self.float) for choice in (QUICK if self.search == "quick" else SETS))

    def writes(self, kind: type[Compressed]) -> bool:
        return any(codec.writes(kind) for codec in self.choices)

    def encode(self, compressed: Compressed) -> Bytes:
        if type(compressed) in (Sparse, SignSparse):
            chosen, message = self._by_set(compressed)  # type: ignore[arg-type]
        else:
            able = [codec for codec in self.choices if codec.writes(type(compressed))]
            messages = [codec.encode(compressed) for codec in able]
            chosen, message = min(zip(able, messages, strict=True), key=lambda pair: pair[1].size)
        return np.concatenate([_FIRST[type(chosen)], message])

    def _by_set(self, c: Sparse | SignSparse) -> tuple[Codec, Bytes]:
        """The codec whose index set is shortest, for the rest of the message is the same; or dense."""
        set_bytes = [codec.set_bytes(c.indices, c.dim) for codec in self.tried]
        least = min(set_bytes)
        if isinstance(c, Sparse) and c.dim * self.float // 8 <= c.elements * self.float // 8 + least:
            dense = self.choices[CHOICES.index(DenseFloats)]
            return dense, dense.encode(c)
        best = self.tried[set_bytes.index(least)]
        return best, best.encode(c)

    def decode(
        self, data: Bytes, at: int, dim: int, kind: type[Compressed], known: Mapping[str, Any] = NOTHING
    ) -> tuple[Compressed, int]:
        if at >= data.size or data.item(at) >= len(CHOICES):
            raise CorruptMessage("the first byte names no codec")
        codec = self.choices[data.item(at)]
        if kind in (Sparse, Dense):  # either may come from a compressor that passes on what it is given
            kind = Dense if type(codec) is DenseFloats else Sparse
        if not codec.writes(kind):
            raise CorruptMessage(f"'{codec.name}' writes no such messages")
        return codec.decode(data, at + 1, dim, kind, known)
