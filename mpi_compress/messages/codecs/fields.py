"""The fields that several codecs share: counts, floats, scales, and integers by the adaptive range coder."""

import struct
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import adaptive
from mpi_compress.kernels.floats import put_count, put_floats, shorten, take_floats
from mpi_compress.messages.codecs.formats import FloatFormat, that_hold
from mpi_compress.messages.kinds import Bytes, Known, Vector

_NUMBERS = {32: struct.Struct("<f"), 64: struct.Struct("<d")}
_LEARNED = 31  # bits of a magnitude, by the range coder with learned chances


def count_bytes(count: int) -> Bytes:
    """A count in seven-bit groups, low ones first, the top bit set on all but the last."""
    out = np.empty(count_length(count), dtype=np.uint8)
    put_count(count, out)
    return out


def count_length(count: int) -> int:
    """The length of `count_bytes`."""
    return 1 if count < 128 else (count.bit_length() + 6) // 7


def count_lengths(counts: Any) -> Any:
    """The same for an array of counts."""
    return 1 + sum(np.asarray(counts) >= 1 << group for group in range(7, 63, 7))


def read_count(data: Bytes, at: int, most: int) -> tuple[int, int]:
    """The count that starts at data[at], at most `most`, and where it ends.

    Raises:
        CorruptMessage: no such count is there.
    """
    if at < data.size and (count := data.item(at)) < 128 and count <= most:
        return count, at + 1
    count = shift = 0
    while at < data.size:
        group = data.item(at)
        at += 1
        count |= (group & 127) << shift
        if count > most:
            break
        if group < 128:
            return count, at
        shift += 7
    raise CorruptMessage(f"no count up to {most} ends before byte {at} of {data.size}")


def float_bytes(values: Vector, form: FloatFormat) -> Bytes:
    """Values as little-endian floats; a view of the values if they have that form.

    Raises:
        OverflowError: a finite value that would round to infinity.
    """
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


def read_floats(data: Bytes, at: int, count: int, form: FloatFormat) -> tuple[Vector, int]:
    """`count` floats from data[at] on, as a new array of float64, and where they end."""
    end = at + count * form.nbytes
    if end > data.size:
        raise CorruptMessage(f"{count} floats of {form.bits} bits need {end} bytes; there are {data.size}")
    values = np.empty(count)
    take_floats(data, at, form.precision, values)
    return values, end


def read_scales(data: Bytes, at: int, dim: int, known: Known, form: FloatFormat) -> tuple[Vector, int, int]:
    """The scales of levels from data[at] on, the coordinates that share one (all if no `bucket` is known), and where they end."""
    bucket = known.get("bucket") or dim
    scales, end = read_floats(data, at, -(-dim // bucket), form)
    return scales, bucket, end


def number_bytes(value: float, form: FloatFormat) -> Bytes:
    """One float, as `float_bytes` writes it."""
    if form.bits == 16:
        return float_bytes(np.array([value]), form)
    try:
        return np.frombuffer(_NUMBERS[form.bits].pack(value), dtype=np.uint8)
    except OverflowError:
        refuse(np.array([value]), form)


def rounded_up(value: float, form: FloatFormat) -> float:
    """The least float that is not below `value` ≥ 0.

    Raises:
        OverflowError: it would be infinite.
    """
    data = number_bytes(value, form)
    nearest, _ = read_number(data, 0, form)
    if nearest >= value:
        return nearest
    above = int.from_bytes(data.tobytes(), "little") + 1  # floats above 0 are in the order of their bits
    least, _ = read_number(np.frombuffer(above.to_bytes(form.nbytes, "little"), dtype=np.uint8), 0, form)
    if least > form.largest:
        refuse(np.array([value]), form)
    return least


def read_number(data: Bytes, at: int, form: FloatFormat) -> tuple[float, int]:
    """One float from data[at] on, and where it ends."""
    end = at + form.nbytes
    if end > data.size:
        raise CorruptMessage(f"a float of {form.bits} bits ends at byte {end}; there are {data.size}")
    if form.bits == 16:
        return read_floats(data, at, 1, form)[0].item(), end
    return _NUMBERS[form.bits].unpack_from(data.data, at)[0], end


def readable(data: Bytes) -> Bytes:
    """The same data with at least 8 bytes, for kernels that read whole words; they find themselves where a message ends."""
    return data if data.size >= 8 else np.concatenate([data, np.zeros(8, dtype=np.uint8)])


def within(end: int, data: Bytes) -> int:
    """`end`, where a kernel found that a message ends.

    Raises:
        CorruptMessage: there is no message, or it ends beyond the data.
    """
    if not 0 <= end <= data.size:
        raise CorruptMessage(f"no message of this codec begins the {data.size} bytes")
    return end


def coded(write: Callable[[Any, Any], int], room: int, ahead: int = 0) -> Bytes:
    """The bytes that `write(digits, out)` writes, after `ahead` free ones; it is called with more room until that suffices."""
    room += 2 * adaptive.ROOM
    while True:
        out = np.empty(ahead + room, dtype=np.uint8)
        length = write(np.empty(room, dtype=np.uint16), out[ahead:])
        if length:
            return out[: ahead + length]
        room *= 2


def write_integers(integers: NDArray[Any], longest: int | None = None, ahead: int = 0) -> Bytes:
    """After `ahead` free bytes one for the bit length n of the largest magnitude, then the integers (d,), unless all are 0.

    The n − 31 lowest bits, where n is more, are sent as they are. `longest` is n, where it is known.
    """
    n = adaptive.longest(integers, 0) if longest is None else longest
    if n == 0:
        return np.zeros(ahead + 1, dtype=np.uint8)
    out = coded(partial(adaptive.write_integers, integers, *split(n)), integers.size * (n + 4) // 16, ahead + 1)
    out[ahead] = n
    return out


def read_integers(data: Bytes, at: int, integers: NDArray[Any], longest: int) -> int:
    """Fill `integers` (d,) from data[at] on. Returns where they end.

    Raises:
        CorruptMessage: bytes that `write_integers` cannot have written, or magnitudes of more than `longest` bits.
    """
    if at >= data.size or (n := data.item(at)) > longest:
        raise CorruptMessage(f"no bit length up to {longest} stands at byte {at} of {data.size}")
    if n == 0:
        integers[:] = 0
        return at + 1
    low_bits, high = split(n)
    return within(adaptive.read_integers(readable(data), at + 1, low_bits, high, integers), data)


def split(longest: int) -> tuple[int, int]:
    """Low bits to send as they are, and the bit length of what is above them, rounding included."""
    return (0, longest) if longest <= _LEARNED else (longest - _LEARNED, _LEARNED + 1)
