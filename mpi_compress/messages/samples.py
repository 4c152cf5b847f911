"""Samples as messages: the kind, and its link."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import mixing
from mpi_compress.kernels import range_coder as coder
from mpi_compress.messages import fields as written
from mpi_compress.messages.fields import Field, Numbers, Reader, in_turn
from mpi_compress.messages.kinds import Bytes, Compressed, Each, Indices, Vector
from mpi_compress.messages.link import Link

_SPARSE = 8  # times that lists of places have fewer bits than rows of bits, from which on they are written
_LONGEST = 2**40  # numbers in a message
_OF_A_BYTE = 2**15  # bits that a byte can hold, of the least cost each
_CELLS = 2**22  # of the table of chances, at most
_DECIMALS = 12  # digits behind the point, at most; of floats the bytes are added to it
_EXACT = 2.0**52  # below it floats hold all integers
_HEAD = (_DECIMALS + 8, 2**54, 64)  # the largest kind of numbers, the largest least one as a count, and bits


@dataclass(eq=False)
class Samples(Compressed):
    """Rows of a data set with their labels, which are no vector and cannot be added.  Paper bits: those of the message itself."""

    floats = ("values", "labels")
    dim: int
    lengths: Numbers  # (N,) nonzeros of each sample
    indices: Indices  # (nonzeros,) increasing in each sample
    values: Vector  # (nonzeros,)
    labels: Vector  # (N,)
    nbytes: int = 0  # of the message that they were read from

    @property
    def elements(self) -> int:
        return self.values.size

    def add_to(self, out: Vector, scale: float = 1.0) -> NoReturn:
        raise ValueError("samples are no vector, and cannot be added")

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return 8.0 * self.nbytes

    def in_order(self) -> "Samples":
        """The same rows, by label, by the places of their entries, and by these."""
        ends, places, values = np.cumsum([0, *self.lengths]).tolist(), self.indices.astype(">u4"), self.values.astype(">f8")
        rows = [slice(*each) for each in pairwise(ends)]
        order = sorted(range(len(rows)), key=lambda j: (self.labels[j], places[rows[j]].tobytes(), values[rows[j]].tobytes()))
        of = np.concatenate([np.arange(ends[j], ends[j + 1]) for j in order]) if order else np.arange(0)
        return Samples(self.dim, self.lengths[order], self.indices[of], self.values[of], self.labels[order])


class SamplesLink(Link):
    """A link whose messages are samples with their labels, exactly, in an order of their own, on which f does not depend. All is
    written by `kernels.mixing`: labels; which columns have an entry; where entries are, row by row as bits, or as lists where
    these are much shorter; and values, as decimal fractions or floats."""

    def write(self, rows: Any) -> Field:
        return in_turn([self._written(samples.in_order()) for samples in rows.parts])

    def _written(self, c: Samples) -> Field:
        room = 2**12
        used, columns = np.unique(c.indices, return_inverse=True)
        (of_labels, labels), (of_values, values) = _as_integers(c.labels), _as_integers(c.values)
        counts = [c.labels.size, c.values.size, *of_labels, *of_values]
        while True:
            try:
                w = _Coder(counts, self.dim, np.empty(8, np.uint8), room)
                w.integers(labels, of_labels[-1])
                w.columns(used)
                w.places(c.labels, used.size, c.lengths, columns)
                w.integers(values, of_values[-1], columns)
                body = w.end()
                head, ends = written.counts(np.array([*counts, body.size]))
                data = np.concatenate([head[: ends[-1]], body])
                return data, np.array([data.size])
            except _Full:
                room *= 4

    def read(self, r: Reader) -> Each:
        return Each([self._read(one) for one in r.each()])

    def _read(self, r: Reader) -> Samples:
        left = r.left(0)
        counts = [r.counts(most).item() for most in (_LONGEST, _LONGEST, *_HEAD, *_HEAD)]
        N, nonzeros, *heads = counts
        start = r.skip(8 * r.counts(_LONGEST).item(), "packed samples").item()
        body = r.data[start : r.at[0]]
        if max(N, nonzeros, self.dim) > _OF_A_BYTE * body.size or nonzeros > N * self.dim:
            raise CorruptMessage(f"{body.size} bytes cannot hold {N} samples with {nonzeros} entries")
        try:
            c = _Coder(counts, self.dim, np.concatenate([body, np.zeros(8, np.uint8)]))
            labels = _from_integers(heads[:3], c.integers(np.zeros(N, np.uint64), heads[2]))
            used = c.columns(np.zeros(0, np.int64))
            lengths, columns = c.places(labels, used.size, np.zeros(N, np.int64), np.zeros(nonzeros, np.int64))
            values = _from_integers(heads[3:], c.integers(np.zeros(nonzeros, np.uint64), heads[5], columns))
        except (_Full, TypeError):
            raise CorruptMessage(f"{body.size} bytes are not what {N} samples with {nonzeros} entries are written to") from None
        return Samples(self.dim, lengths, used[columns].astype(np.uint32), values, labels, left - r.left(0))

    def planned_wire_bits(self, T: Any) -> Any:
        return None

    def paper_bits(self, content: Compressed) -> float:
        return content.paper_bits(64)


class _Full(Exception):
    """The room for what is written is too small, or what is read does not fit."""


class _Coder:
    """Writes arrays, or reads into them what was written, if there is no `room` for digits: each method does both."""

    def __init__(self, counts: Sequence[int], dim: int, data: Bytes, room: int = 0):
        N, self.nonzeros, *_ = counts
        self.dim, self.writes = dim, room > 0
        cells = 1 << (8 * (N + dim + 16 * self.nonzeros + min(N * dim, 128 * self.nonzeros))).bit_length()
        weights = np.full((mixing.SETS, mixing.INPUTS, mixing.LEVELS), mixing.START)
        chances = np.full(min(cells, _CELLS), 2**15, np.uint16)
        self.model = chances, np.zeros(chances.size, np.uint8), weights, np.zeros((5, mixing.INPUTS), np.int64)
        state = coder.BEGUN if self.writes else coder.begun(data, 0)
        self.stream = np.zeros(room, np.uint16) if self.writes else data, np.array(state, np.uint64)

    def integers(self, numbers: NDArray, bits: int, columns: Any = None) -> NDArray[np.uint64]:
        numbers, columns = numbers.astype(np.uint64), np.zeros(numbers.size, np.int64) if columns is None else columns
        self._code(mixing.code_numbers, numbers, columns, bits)
        return numbers

    def columns(self, used: NDArray[np.integer]) -> NDArray[np.integer]:
        """The columns that have an entry."""
        held = np.zeros(self.dim)
        held[used] = 1
        return np.flatnonzero(self.integers(held, 1))

    def places(self, labels: Vector, across: int, lengths: Numbers, columns: Numbers) -> Any:
        """The lengths of rows, and the places of entries among the columns that have one."""
        N, bits = labels.size, across.bit_length()
        if N * across > _SPARSE * bits * self.nonzeros:
            lengths, columns = (self.integers(each, bits).astype(np.int64) for each in (lengths, columns))
            at = np.repeat(np.arange(N), lengths) if lengths.sum() == self.nonzeros else np.zeros(0)
            if at.size < columns.size or (np.diff(columns)[np.diff(at) == 0] <= 0).any() or (columns >= across).any():
                raise _Full
            return lengths, columns
        rows = np.zeros((N, across), np.uint8)
        if self.writes:
            rows[np.repeat(np.arange(N), lengths), columns] = 1
        self._code(mixing.code_bits, rows, (labels == labels.max(initial=-np.inf)).astype(np.int64))
        if int(rows.sum()) != self.nonzeros:
            raise _Full
        return rows.sum(axis=1, dtype=np.int64), rows.nonzero()[1].copy()

    def _code(self, kernel: Callable[..., bool], *arrays: Any) -> None:
        if not kernel(*arrays, self.model, self.stream):
            raise _Full

    def end(self) -> Bytes:
        """What was written."""
        digits, state = self.stream
        out = np.empty(digits.size, np.uint8)
        return out[: coder.settle(digits, tuple(state), out)]


def _as_integers(values: Vector) -> tuple[list[int], NDArray[np.uint64]]:
    """Numbers as integers from 0 on; before them their kind, which is a number of decimals, or that of floats; the least one, as
    a count whose lowest bit is its sign; and bits."""
    for kind in range(_DECIMALS + 1):
        found = np.rint(values * 10.0**kind)
        if not abs(found).max(initial=0.0) < _EXACT:
            break
        if (found / 10.0**kind == values).all():
            least = int(found.min()) if found.size else 0
            found = (found - least).astype(np.uint64)
            return [kind, 2 * abs(least) + (least < 0), _bits_of(found)], found
    with np.errstate(over="ignore"):
        size = next(size for size in (2, 4, 8) if size == 8 or (values.astype(f"<f{size}") == values).all())
    found = values.astype(f"<f{size}").view(f"<u{size}").astype(np.uint64)
    return [_DECIMALS + size, 0, _bits_of(found)], found


def _bits_of(integers: NDArray[np.uint64]) -> int:
    return max(1, int(integers.max(initial=0)).bit_length())


def _from_integers(head: Sequence[int], integers: NDArray[np.uint64]) -> Vector:
    """The numbers that `_as_integers` made these of; TypeError if the kind is none."""
    kind, least, _ = head
    if kind > _DECIMALS:
        size = kind - _DECIMALS
        return integers.astype(f"<u{size}").view(f"<f{size}").astype(np.float64)
    return (integers.astype(np.float64) + (-(least // 2) if least % 2 else least // 2)) / 10.0**kind
