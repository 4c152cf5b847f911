"""The fields of messages: counts, floats, signs, and integers by the adaptive range coder, those of all rows at once.

Functions write a field: its bytes, those of all rows one after another, and `ends` (m,), where each row's end. `joined` makes
messages of fields. A `Reader` reads the messages' fields one after another.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.arrays import Bytes, Flags, Vector
from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import adaptive
from mpi_compress.kernels import fields as kernels
from mpi_compress.kernels.floats import put_floats
from mpi_compress.kernels.vectors import lengths_of
from mpi_compress.messages.formats import LEAST, MOST, FloatFormat, that_hold

Numbers = NDArray[np.int64]
Field = tuple[Bytes, Numbers]
ROOM = 8  # bytes behind the messages that kernels may read
_TOGETHER = 4  # fields that one call of a kernel joins
_ROOM: Bytes = np.zeros(ROOM, dtype=np.uint8)


class Reader:
    """Reads m messages field by field, all rows at once; each message begins at data[at] and lies before data[ends]. `data` has 8
    bytes more than the messages. Every method raises CorruptMessage where a row's field is not there, or is none that the writing
    function can have written; it tells of the first such row."""

    __slots__ = ("at", "data", "ends", "form")

    def __init__(self, data: Bytes, at: Numbers, form: FloatFormat, ends: Numbers | None = None):
        self.data, self.at, self.form = data, at, form
        self.ends = np.full(at.size, data.size - ROOM) if ends is None else ends

    @classmethod
    def of_one(cls, data: Bytes, at: int, form: FloatFormat) -> "Reader":
        """A reader of the message that begins at data[at]; there is nothing behind `data`."""
        return cls(np.concatenate([data, _ROOM]), np.array([at]), form)

    def each(self) -> "Iterator[Reader]":
        """A reader of each row. What it reads is read."""
        if self.at.size == 1:
            yield self
        else:
            for i in range(self.at.size):
                yield Reader(self.data, self.at[i : i + 1], self.form, self.ends[i : i + 1])

    def refuse(self, row: int, what: str) -> None:
        """Raise CorruptMessage where a kernel has found no `what` in a row; it says −1 if there is none such."""
        if row >= 0:
            raise CorruptMessage(f"{what} needs other bytes than the {self.left(row)} that are left")

    def left(self, row: int) -> int:
        """The bytes that are left of a row's message."""
        return int(self.ends[row] - self.at[row])

    def skip(self, nbits: Any, what: str) -> Numbers:
        """Go over `what`, of so many bits in whole bytes. Returns where it began."""
        starts = self.at.copy()
        if (i := kernels.skip(self.at, self.ends, _each(nbits))) >= 0:
            raise CorruptMessage(f"{what} needs {(_of_row(nbits, i) + 7) // 8} bytes; there are {self.left(i)}")
        return starts

    def bytes(self, most: int, what: str) -> Numbers:
        """A byte up to `most` of each row, which says `what`."""
        found = np.empty_like(self.at)
        if (i := kernels.take_bytes(self.data, self.at, self.ends, most, found)) >= 0:
            raise CorruptMessage(f"the first of {self.left(i)} bytes names no {what}")
        return found

    def wholes(self, dtype: str, what: str, of: Flags | None = None) -> NDArray:
        """A whole number of some NumPy type of each row, or of those rows alone; others have 0."""
        nbytes, has = int(dtype[-1]), np.ones(self.at.size, dtype=np.bool_) if of is None else of
        starts = self.skip(8 * nbytes * has, what)
        found = np.zeros(starts.size, dtype=dtype)
        found[has] = self.data[starts[has, None] + np.arange(nbytes)].view(dtype)[:, 0]
        return found

    def counts(self, most: Any, running: bool = False) -> Numbers:
        """The counts (m,) that `counts` wrote, at most `most`; or their running totals, where so many of each row end."""
        found = np.empty_like(self.at)
        if (i := kernels.take_counts(self.data, self.at, self.ends, _each(most), running, found)) >= 0:
            raise CorruptMessage(f"no count up to {_of_row(most, i)} ends in {self.left(i)} bytes")
        return found

    def floats(self, ends: Any) -> Vector:
        """The floats (T,) of all rows that `floats` wrote, those of each before its end, or so many of each, as a new array."""
        values, ends = self._array(ends, 1, np.float64)
        if (i := kernels.take_values(self.data, self.at, self.ends, ends, self.form.precision, values)) >= 0:
            raise CorruptMessage(f"{_count(ends, i)} floats of {self.form.bits} bits do not end in {self.left(i)} bytes")
        return values

    def numbers(self) -> Vector:
        """A float of each row (m,)."""
        return self.floats(1)

    def signs(self, ends: Any) -> Flags:
        """The signs (T,) of all rows that `signs` wrote, those of each before its end, or so many of each."""
        negative, ends = self._array(ends, 8, np.bool_)
        if (i := kernels.take_signs(self.data, self.at, self.ends, ends, negative)) >= 0:
            raise CorruptMessage(f"an array of signs needs {(_count(ends, i) + 7) // 8} bytes; there are {self.left(i)}")
        return negative

    def _array(self, ends: Any, most: int, dtype: Any) -> tuple[NDArray, Numbers]:
        """An array (T,) for what ends there, or for so many of each row, and these ends. A byte holds `most` at most; the array is
        empty if there are too few bytes."""
        ends = self._ends(ends)
        total = last(ends)
        return np.empty(total if total <= most * self.data.size else 0, dtype=dtype), ends

    def integers(self, count: int, most: Any) -> NDArray:
        """Integers (m, count) up to `most` in size that `integers` wrote; int32, or int64 where `most` is more."""
        found: NDArray = np.zeros((self.at.size, count), dtype=np.int32 if np.max(most, initial=0) < 2**31 else np.int64)
        row = adaptive.take_integers(self.data, self.at, self.ends, _each(most), found)
        self.refuse(row, f"an array of {count} integers")
        return found

    def signed(self, count: int, width: Any, most: Any) -> NDArray[np.int32]:
        """Integers (m, count) up to `most` in size that `signed_fields` wrote."""
        self.room_for(np.cumsum(np.full(self.at.size, count) * (width + 1) * (width > 0)), 1, "bits of fields")
        found = np.empty((self.at.size, count), dtype=np.int32)
        if (i := kernels.take_signed(self.data, self.at, self.ends, _each(width), _each(most), found)) >= 0:
            largest = np.abs(found[i].astype(np.int64)).max()
            raise CorruptMessage(f"a field holds {largest}; the largest number is {_of_row(most, i)}")
        return found

    def room_for(self, ends: Any, least_bits: int, what: str) -> None:
        """Refuse messages that are too short for so many of `what` (see `floats`), each of so many bits at least, before work is
        done for them."""
        ends = self._ends(ends)
        if (i := kernels.too_short(self.at, self.ends, ends, least_bits)) >= 0:
            raise CorruptMessage(f"{self.left(i)} bytes are too few for {_count(ends, i)} {what}")

    def _ends(self, ends: Any) -> Numbers:
        return ends if type(ends) is np.ndarray else equal_ends(self.at.size, ends)


def _count(ends: Numbers, i: int) -> int:
    """What row i has."""
    return int(ends[i] - (ends[i - 1] if i else 0))


def _each(number: Any) -> Numbers:
    """What rows have each (m,), or all alike (1,), as kernels take it."""
    return number if type(number) is np.ndarray else np.array([number])


def _of_row(number: Any, i: int) -> int:
    return int(number[i] if type(number) is np.ndarray else number)


def read_exponent(r: Reader, other: int = 0, of: Flags | None = None) -> Numbers:
    """The exponent of a float's power of two in two bytes, or `other`; of those rows alone, others have 0."""
    exponents = r.wholes("<i2", "an exponent", of).astype(np.int64)
    wrong = exponents[((exponents < LEAST) | (exponents > MOST)) & (exponents != other)]
    if wrong.size:
        raise CorruptMessage(f"2^{wrong[0]} is no float")
    return exponents


def joined(*fields: Field) -> Field:
    """The messages whose fields these are, with 8 bytes more behind them."""
    while len(fields) > _TOGETHER:
        fields = tuple(joined(*fields[i : i + _TOGETHER]) for i in range(0, len(fields), _TOGETHER))
    if len(fields) == 1 and fields[0][0].size >= last(fields[0][1]) + ROOM:
        return fields[0]
    data, ends = zip(*fields, strict=True)
    stops, room = np.empty_like(ends[0]), ROOM
    for each in ends:
        room += last(each)
    out = np.empty(room, dtype=np.uint8)
    kernels.join(data, ends, out, stops)
    return out, stops


def in_turn(messages: Sequence[Field]) -> Field:
    """The rows of several fields, all those of one after all of another."""
    data = [out[: last(ends)] for out, ends in messages]
    sizes = np.cumsum([0, *(each.size for each in data)])
    return np.concatenate([*data, _ROOM]), np.concatenate([ends + size for (_, ends), size in zip(messages, sizes, strict=False)])


def some_of(field: Field, kept: Flags) -> Field:
    """The field without the bytes of the rows that are not `kept` (m,)."""
    out, ends = field
    sizes = lengths_of(ends)
    return out[: last(ends)][np.repeat(kept, sizes)], np.cumsum(sizes * kept)


def last(ends: Numbers) -> int:
    """Where the last of some rows ends."""
    return int(ends[-1]) if ends.size else 0


@lru_cache(maxsize=64)
def equal_ends(m: int, size: int) -> Numbers:
    """The ends of m rows of that size, which lie one after another."""
    return size * np.arange(1, m + 1)


def counts(numbers: Numbers) -> Field:
    """Counts (m,) in seven-bit groups, low ones first, the top bit set on all but the last."""
    out, ends = np.empty(9 * numbers.size + ROOM, dtype=np.uint8), np.empty_like(numbers)
    kernels.put_counts(numbers, out, ends)
    return out, ends


def count_lengths(counts: Any) -> Any:
    """The lengths that `counts` writes."""
    return 1 + sum(np.asarray(counts) >= 1 << group for group in range(7, 63, 7))


def floats(values: Vector, ends: Numbers, form: FloatFormat) -> Field:
    """Values (T,), those of a row before its end, as little-endian floats; OverflowError where a finite value would round to
    infinity."""
    out = np.empty(form.nbytes * values.size + ROOM, dtype=np.uint8)
    if not put_floats(values, form.precision, out):
        for row in np.split(values, ends[:-1]):
            refuse_overflow(row, form)
    return out, form.nbytes * ends


def numbers(values: Vector, form: FloatFormat) -> Field:
    """A float of each row (m,), as `floats` writes it."""
    return floats(values, equal_ends(values.size, 1), form)


def refuse_overflow(values: Vector, form: FloatFormat) -> None:
    """Raise the OverflowError that says which value does not fit a format, and which formats it fits, if there is one."""
    if not put_floats(values, form.precision, np.empty(form.nbytes * values.size, dtype=np.uint8)):
        raise OverflowError(_overflow(np.max(np.abs(values[np.isfinite(values)])), form))


def _overflow(value: float, form: FloatFormat) -> str:
    return f"a value of magnitude {value:g} overflows a {form.text}; use float = {that_hold(value)}"


def rounded_up(value: float, form: FloatFormat) -> float:
    """The least float that is not below `value` ≥ 0; OverflowError if it would be infinite."""
    data, _ = numbers(np.array([value]), form)
    word = data[: form.nbytes].view(f"<u{form.nbytes}")
    nearest = Reader(data, np.zeros(1, dtype=np.int64), form).numbers()
    if nearest[0] < value:
        word += 1  # floats above 0 are in the order of their bits
        nearest = Reader(data, np.zeros(1, dtype=np.int64), form).numbers()
    if nearest[0] > form.largest:
        raise OverflowError(_overflow(value, form))
    return nearest.item()


def signs(negative: Flags, ends: Numbers) -> Field:
    """Flags (T,), those of a row before its end, as bits; each row begins with a byte of its own."""
    out, stops = np.empty(negative.size // 8 + ends.size + ROOM, dtype=np.uint8), np.empty_like(ends)
    kernels.put_signs(negative, ends, out, stops)
    return out, stops


def signed_fields(integers: NDArray[np.signedinteger], width: Any) -> Field:
    """Integers (m, d) below 2^width ≤ 2³¹ in size, width one number or (m,), with their signs as the lowest bits; nothing where the
    width is 0."""
    m, d = integers.shape
    room = m * ((d * (int(np.max(width, initial=0)) + 1) + 7) // 8)
    out, ends = np.empty(room + ROOM, dtype=np.uint8), np.empty(m, dtype=np.int64)
    kernels.put_signed(integers, _each(width), out, ends)
    return out, ends


def one_byte(numbers: NDArray) -> Field:
    """Numbers (m,) below 256."""
    return wholes(numbers, "<u1")


def wholes(numbers: NDArray, dtype: str) -> Field:
    """Whole numbers (m,) of some NumPy type."""
    return np.ascontiguousarray(numbers, dtype).view(np.uint8), equal_ends(len(numbers), int(dtype[-1]))


def integers(numbers: NDArray) -> Field:
    """A byte for the bit length n of a row's largest magnitude, then its integers by the range coder, (m, d) in all, unless all are
    0. The n − 31 lowest bits, where n is more, are sent as they are."""
    return adaptive.put_integers(numbers)
