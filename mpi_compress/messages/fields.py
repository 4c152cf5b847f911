"""The fields that several codecs share: counts, floats, signs, and integers by the adaptive range coder.

Functions write a field as bytes; a `Reader` reads the fields of a message one after another.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.arrays import Bytes, Flags, Vector
from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import adaptive, bits
from mpi_compress.kernels.floats import count_length, put_count, put_floats, shorten, take_floats
from mpi_compress.messages.formats import LEAST, MOST, FloatFormat, that_hold

_LEARNED = 31  # bits of a magnitude, by the range coder with learned chances
LEAST_BITS = 2.0**-16  # an outcome of the range coder costs at least this: its chance is up to 1 − 2⁻¹⁶
NO_BYTES: Bytes = np.empty(0, dtype=np.uint8)


class Reader:
    """Reads a message, which begins at data[at], field by field. Every method raises CorruptMessage where the field is not there,
    or is none that the writing function can have written."""

    __slots__ = ("at", "data", "form")

    def __init__(self, data: Bytes, at: int, form: FloatFormat):
        self.data, self.at, self.form = data, at, form

    def take(self, nbytes: int, what: str) -> Bytes:
        """The next bytes, which are `what`."""
        start, self.at = self.at, self.at + nbytes
        if self.at > self.data.size:
            raise CorruptMessage(f"{what} needs {nbytes} bytes; there are {self.data.size - start}")
        return self.data[start : self.at]

    def byte(self, most: int, what: str) -> int:
        """A byte up to `most`, which says `what`."""
        if self.at >= self.data.size or (byte := self.data.item(self.at)) > most:
            raise CorruptMessage(f"byte {self.at} of {self.data.size} names no {what}")
        self.at += 1
        return byte

    def whole(self, dtype: str, what: str) -> int:
        """A whole number of some NumPy type."""
        return int(self.take(int(dtype[-1]), what).view(dtype)[0])

    def count(self, most: int) -> int:
        """The count that `count_bytes` wrote, at most `most`."""
        at, size = self.at, self.data.size
        count = shift = 0
        while at < size:
            group = self.data.item(at)
            at += 1
            count |= (group & 127) << shift
            if count > most:
                break
            if group < 128:
                self.at = at
                return count
            shift += 7
        raise CorruptMessage(f"no count up to {most} ends before byte {at} of {size}")

    def floats(self, count: int) -> Vector:
        """`count` floats that `float_bytes` wrote, as a new array of float64."""
        at = self.at
        self.at += count * self.form.nbytes
        if self.at > self.data.size:
            raise CorruptMessage(f"{count} floats of {self.form.bits} bits end at byte {self.at}; there are {self.data.size}")
        values = np.empty(count)
        take_floats(self.data, at, self.form.precision, values)
        return values

    def number(self) -> float:
        """The float that `number_bytes` wrote."""
        return self.floats(1).item()

    def signs(self, count: int) -> Flags:
        """`count` signs that `sign_bytes` wrote."""
        data = self.take((count + 7) // 8, "an array of signs")
        return np.unpackbits(data, count=count, bitorder="little").view(np.bool_)

    def integers(self, count: int, most: int) -> NDArray[Any]:
        """`count` integers up to `most` in size that `write_integers` wrote; int32, or int64 where `most` is more."""
        n = self.byte(most.bit_length(), f"bit length up to {most.bit_length()}")
        if n:
            self.room_for(count, LEAST_BITS, "integers")
        integers: NDArray[Any] = np.zeros(count, dtype=np.int32 if most < 2**31 else np.int64)
        if n:
            self.goes_to(adaptive.read_integers(self.readable, self.at, *split(n), integers))
            if most & (most + 1) and max(int(integers.max()), -int(integers.min())) > most:  # else the bit length says so
                raise CorruptMessage(f"an integer is beyond {most} in size")
        return integers

    def signed(self, count: int, width: int, most: int) -> NDArray[np.int32]:
        """`count` integers up to `most` in size that `signed_fields` wrote."""
        start = self.at
        self.take((count * (width + 1) + 7) // 8, "an array of fields")
        fields = np.empty(count, dtype=np.uint32)
        bits.read_fields(self.readable, start, width + 1, 0, fields)
        sizes = (fields >> np.uint32(1)).astype(np.int32)
        if int(sizes.max()) > most:
            raise CorruptMessage(f"a field holds {sizes.max()}; the largest number is {most}")
        return np.where(fields & np.uint32(1), -sizes, sizes)

    def room_for(self, count: int, least_bits: float, what: str) -> None:
        """Refuse a message that is too short for `count` of `what`, each of so many bits at least, before work is done for them."""
        if count * least_bits > 8 * (self.data.size - self.at):
            raise CorruptMessage(f"{self.data.size - self.at} bytes are too few for {count} {what}")

    @property
    def readable(self) -> Bytes:
        """The data with at least 8 bytes, for kernels that read whole words; they find themselves where a message ends."""
        return self.data if self.data.size >= 8 else np.concatenate([self.data, np.zeros(8, dtype=np.uint8)])

    def goes_to(self, end: int) -> None:
        """Go on where a kernel found that a field ends; that is below 0 if there is none."""
        if not 0 <= end <= self.data.size:
            raise CorruptMessage(f"no message of this codec begins the {self.data.size} bytes")
        self.at = end

    def goes_to_bit(self, end: int) -> None:
        """The same for an end in bits; the rest of the last byte is padding."""
        self.goes_to((end + 7) // 8 if end >= 0 else end)


def read_exponent(r: Reader, other: int = 0) -> int:
    """The exponent of a float's power of two in two bytes, or `other`."""
    exponent = r.whole("<i2", "an exponent")
    if not (LEAST <= exponent <= MOST or exponent == other):
        raise CorruptMessage(f"2^{exponent} is no float")
    return exponent


def count_bytes(count: int) -> Bytes:
    """A count in seven-bit groups, low ones first, the top bit set on all but the last."""
    out = np.empty(count_length(count), dtype=np.uint8)
    put_count(count, out)
    return out


def count_lengths(counts: Any) -> Any:
    """The lengths of `count_bytes` of an array of counts."""
    return 1 + sum(np.asarray(counts) >= 1 << group for group in range(7, 63, 7))


def float_bytes(values: Vector, form: FloatFormat) -> Bytes:
    """Values as little-endian floats, a view if they have that form; OverflowError where a finite value would round to infinity."""
    if form.bits == 64:
        return np.ascontiguousarray(values, dtype="<f8").view(np.uint8)
    if form.bits == 32:
        short = np.empty(values.size, dtype="<f4")
        right, out = shorten(values, short), short.view(np.uint8)
    else:
        out = np.empty(form.nbytes * values.size, dtype=np.uint8)
        right = put_floats(values, form.precision, out)
    if not right:
        refuse(values, form)
    return out


def refuse(values: Vector, form: FloatFormat) -> NoReturn:
    """Raise the OverflowError that says which value does not fit a format, and which formats it fits."""
    worst = np.max(np.abs(values[np.isfinite(values)]))
    raise OverflowError(f"a value of magnitude {worst:g} overflows a {form.text}; use float = {that_hold(worst)}")


def number_bytes(value: float, form: FloatFormat) -> Bytes:
    """One float, as `float_bytes` writes it."""
    return float_bytes(np.array([value]), form)


def rounded_up(value: float, form: FloatFormat) -> float:
    """The least float that is not below `value` ≥ 0; OverflowError if it would be infinite."""
    data = number_bytes(value, form)
    nearest = Reader(data, 0, form).number()
    if nearest >= value:
        return nearest
    above = int.from_bytes(data.tobytes(), "little") + 1  # floats above 0 are in the order of their bits
    least = Reader(np.frombuffer(above.to_bytes(form.nbytes, "little"), dtype=np.uint8), 0, form).number()
    if least > form.largest:
        refuse(np.array([value]), form)
    return least


def sign_bytes(negative: Flags) -> Bytes:
    """Signs as bits."""
    return np.packbits(negative, bitorder="little")


def signed_fields(integers: NDArray[np.signedinteger], width: int) -> Bytes:
    """Integers (d,) below 2^width ≤ 2³¹ in size, with their signs as the lowest bits."""
    fields = np.abs(integers).astype(np.uint32) << np.uint32(1) | (integers < 0)
    out = np.empty((integers.size * (width + 1) + 7) // 8, dtype=np.uint8)
    bits.pack_fields(fields, width + 1, out, 0)
    return out


def one_byte(value: int) -> Bytes:
    """A number below 256."""
    return np.array([value], dtype=np.uint8)


def seed_bytes(seed: int, dtype: str) -> Bytes:
    """A seed as a whole number of some NumPy type."""
    return np.array([seed], dtype=dtype).view(np.uint8)


def coded(write: Callable[[Any, Any], int], room: int) -> Bytes:
    """The bytes that `write(digits, out)` writes; it is called with more room until that suffices."""
    room += 2 * adaptive.ROOM
    while True:
        out = np.empty(room, dtype=np.uint8)
        if length := write(np.empty(room, dtype=np.uint16), out):
            return out[:length]
        room *= 2


def write_integers(integers: NDArray[Any]) -> Bytes:
    """A byte for the bit length n of the largest magnitude, then the integers (d,), unless all are 0. The n − 31 lowest bits, where
    n is more, are sent as they are."""
    n = adaptive.longest(integers, 0)
    body = coded(partial(adaptive.write_integers, integers, *split(n)), integers.size * (n + 4) // 16) if n else NO_BYTES
    return np.concatenate([one_byte(n), body])


def split(longest: int) -> tuple[int, int]:
    """Low bits to send as they are, and the bit length of what is above them, rounding included."""
    return (0, longest) if longest <= _LEARNED else (longest - _LEARNED, _LEARNED + 1)
