"""The codec of GSpar's messages."""

from functools import partial
from typing import Any

import numpy as np

from mpi_compress.messages.codecs.base import FieldCodec, SideInfo, codecs, read_by, write_by
from mpi_compress.messages.codecs.fixed import Fixed
from mpi_compress.messages.fields import Field, Reader, floats, joined, numbers, one_byte, signs
from mpi_compress.messages.kinds import Hybrid, index_bits

_INDICES, _STRING = 0, 1  # forms


@codecs.register("gspar-hybrid")
class GSparHybrid(FieldCodec):
    """The shorter of GSpar's two forms (Wangni et al. 2018, §2.3); the first byte says which.

    indexed   s indices with values, r indices with signs of one bit, the magnitude: as `fixed` writes them
    string    two bits for every coordinate: + the magnitude, −, both for a value; the s values; the magnitude
    """

    kinds = (Hybrid,)

    def write(self, c: Any) -> Field:
        string = c.elements * index_bits(c.dim) + c.sign_counts > 2 * c.dim
        return joined(one_byte(string), write_by(string, c, self._write))

    def _write(self, c: Any, string: bool) -> Field:
        if not string:
            return Fixed(self.float).write(c)  # type: ignore[abstract]  # `complete` gives it the other form
        symbols = np.zeros((c.rows, c.dim, 2), dtype=np.bool_)
        rows, sign_rows = (np.repeat(np.arange(c.rows), counts) for counts in (c.counts, c.sign_counts))
        symbols[rows, c.indices], symbols[sign_rows, c.sign_indices, c.negative.view(np.uint8)] = True, True
        return joined(
            signs(symbols.ravel(), 2 * c.dim * np.arange(1, c.rows + 1)),
            floats(c.values, c.ends, self.float_format),
            numbers(c.magnitude, self.float_format),
        )

    def read(self, r: Reader, dim: int, kind: Any, known: SideInfo) -> Any:
        return read_by(r.bytes(_STRING, "form of a hybrid message"), r, partial(self._read, dim))

    def _read(self, dim: int, r: Reader, form: int) -> Hybrid:
        if form == _INDICES:
            return Fixed(self.float).read(r, dim, Hybrid, {})  # type: ignore[abstract]
        r.room_for(2 * dim, 1, "symbols")
        plus, minus = np.moveaxis(r.signs(2 * dim).reshape(-1, dim, 2), 2, 0)
        (rows, indices), (sign_rows, sign_indices) = np.nonzero(plus & minus), np.nonzero(plus ^ minus)
        ends, sign_ends = (np.bincount(held, minlength=len(plus)).cumsum() for held in (rows, sign_rows))
        negative, values, magnitude = minus[sign_rows, sign_indices], r.floats(ends), r.numbers()
        sets = indices.astype(np.uint32), values, sign_indices.astype(np.uint32), negative
        return Hybrid(dim, *sets, magnitude, ends, sign_ends)
