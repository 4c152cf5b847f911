"""The fields that several codecs share: counts, floats, scales, and integers by the adaptive range coder."""

import struct
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import adaptive
from mpi_compress.kernels.floats import put_count, shorten, take_floats
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


def float_bytes(values: Vector, bits: int) -> Bytes:
    """Values as little-endian floats of 32 or 64 bits; a view of the values if they have that form.

    Raises:
        OverflowError: a finite value beyond the largest float of 32 bits.
    """
    if bits == 64:
        return np.ascontiguousarray(values, dtype="<f8").view(np.uint8)
    short = np.empty(values.size, dtype="<f4")
    if not shorten(values, short):
        refuse(values)
    return short.view(np.uint8)


def refuse(values: Vector) -> NoReturn:
    """Raise the OverflowError that says which value does not fit a float of 32 bits."""
    worst = np.max(np.abs(values[np.isfinite(values)]))
    raise OverflowError(f"a value of magnitude {worst:g} overflows a float of 32 bits; use float = 64")


def read_floats(data: Bytes, at: int, count: int, bits: int) -> tuple[Vector, int]:
    """`count` floats from data[at] on, as a new array of float64, and where they end."""
    end = at + count * bits // 8
    if end > data.size:
        raise CorruptMessage(f"{count} floats of {bits} bits need {end} bytes; there are {data.size}")
    values = np.empty(count)
    take_floats(data, at, bits, values)
    return values, end


def read_scales(data: Bytes, at: int, dim: int, known: Known, bits: int) -> tuple[Vector, int, int]:
    """The scales of levels from data[at] on, the coordinates that share one (all if no `bucket` is known), and where they end."""
    bucket = known.get("bucket") or dim
    scales, end = read_floats(data, at, -(-dim // bucket), bits)
    return scales, bucket, end


def number_bytes(value: float, bits: int) -> Bytes:
    """One float, as `float_bytes` writes it."""
    return np.frombuffer(_packed(value, bits), dtype=np.uint8)


def rounded(value: float, bits: int) -> float:
    """The number that `number_bytes` writes."""
    return _NUMBERS[bits].unpack(_packed(value, bits))[0]


def _packed(value: float, bits: int) -> bytes:
    try:
        return _NUMBERS[bits].pack(value)
    except OverflowError:
        refuse(np.array([value]))


def read_number(data: Bytes, at: int, bits: int) -> tuple[float, int]:
    """One float from data[at] on, and where it ends."""
    end = at + bits // 8
    if end > data.size:
        raise CorruptMessage(f"a float of {bits} bits ends at byte {end}; there are {data.size}")
    return _NUMBERS[bits].unpack_from(data.data, at)[0], end


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
