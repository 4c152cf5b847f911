"""The base of codecs for index sets: it writes and reads the rest of their messages."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import bits, floats
from mpi_compress.messages import fields
from mpi_compress.messages.codecs.base import Bytes, FieldCodec, Known
from mpi_compress.messages.fields import NO_BYTES, Reader
from mpi_compress.messages.kinds import Compressed, Hybrid, Indices, SignSparse, Sparse


@dataclass(frozen=True)
class IndexCodec(FieldCodec):
    """Writes index sets in its own way, and around them:

        Sparse        T, T values, the set
        SignSparse    T, the magnitude, the set, T signs of one bit
        Hybrid        s, r, s values, the magnitude, the set of s, the set of r, r signs

    with counts in seven-bit groups, and floats of the codec's format.
    """

    kinds: ClassVar[tuple[type[Compressed], ...]] = (Sparse, SignSparse, Hybrid)

    @abstractmethod
    def write_set(self, indices: Indices, dim: int, ahead: int = 0) -> Bytes:
        """Write the set (T,), after `ahead` free bytes."""

    @abstractmethod
    def read_set(self, r: Reader, dim: int, indices: Indices) -> None:
        """Fill `indices` (T,), T ≤ dim, with the set that `r` is at, and take its bytes; CorruptMessage where no such set is."""

    def set_bytes(self, indices: Indices, dim: int) -> int:
        """The number of bytes that `write_set` writes."""
        planned = self.planned_set_bytes(indices.size, dim)
        return self.write_set(indices, dim).size if planned is None else planned

    def planned_set_bytes(self, T: Any, dim: int) -> Any:
        """The number of bytes of any set of T indices; None if T alone does not decide it."""
        return None

    def planned_bytes(self, kind: type[Compressed], T: Any, dim: int) -> Any:
        set_bytes = self.planned_set_bytes(T, dim)
        if set_bytes is None or kind not in (Sparse, SignSparse):
            return None
        values = T * self.float_format.nbytes if kind is Sparse else self.float_format.nbytes + (T + 7) // 8
        return fields.count_lengths(T) + values + set_bytes

    def encode(self, compressed: Compressed) -> Bytes:
        form, c = self.float_format, compressed
        if isinstance(c, Sparse):
            T = c.indices.size
            out = self.write_set(c.indices, c.dim, ahead=fields.count_length(T) + T * form.nbytes)
            if not floats.put_count_and_floats(c.values, form.precision, out):
                fields.refuse(c.values, form)
            return out
        assert isinstance(c, SignSparse | Hybrid)
        sets = (c.indices, c.sign_indices) if isinstance(c, Hybrid) else (c.indices,)
        counts, written = [fields.count_bytes(each.size) for each in sets], [self.write_set(each, c.dim) for each in sets]
        values = fields.float_bytes(c.values, form) if isinstance(c, Hybrid) else NO_BYTES
        return np.concatenate([*counts, values, fields.number_bytes(c.magnitude, form), *written, fields.sign_bytes(c.negative)])

    def read(self, r: Reader, dim: int, kind: type[Compressed], known: Known) -> Compressed:
        count = r.count(most=dim)
        if kind is Sparse:
            values = r.floats(count)
            return Sparse(dim, self._set(r, dim, count), values)
        if kind is SignSparse:
            magnitude = r.number()
            r.room_for(count, 1, "signs")
            indices = self._set(r, dim, count)
            return SignSparse(dim, indices, r.signs(count), magnitude)
        sign_count = r.count(most=dim - count)
        values, magnitude = r.floats(count), r.number()
        r.room_for(sign_count, 1, "signs")
        indices, sign_indices = self._set(r, dim, count), self._set(r, dim, sign_count)
        if not bits.disjoint(indices, sign_indices):
            raise CorruptMessage("an index stands in both sets")
        return Hybrid(dim, indices, values, sign_indices, r.signs(sign_count), magnitude)

    def _set(self, r: Reader, dim: int, count: int) -> Indices:
        indices = np.empty(count, dtype=np.uint32)
        self.read_set(r, dim, indices)
        return indices
