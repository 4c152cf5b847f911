"""Integers by the adaptive range coder, for the codecs `entropy` and `lattice`."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import adaptive as kernels
from mpi_compress.messages.codecs.base import Bytes
from mpi_compress.messages.codecs.fields import readable, within

LEARNED = 31  # bits of a magnitude


def coded(write: Callable[[Any, Any], int], room: int, ahead: int = 0) -> Bytes:
    """The bytes that `write(digits, out)` writes, after `ahead` free ones; it is called with more room until that suffices."""
    room += 2 * kernels.ROOM
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
    n = kernels.longest(integers, 0) if longest is None else longest
    if n == 0:
        return np.zeros(ahead + 1, dtype=np.uint8)
    out = coded(partial(kernels.write_integers, integers, *split(n)), integers.size * (n + 4) // 16, ahead + 1)
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
    return within(kernels.read_integers(readable(data), at + 1, low_bits, high, integers), data)


def split(longest: int) -> tuple[int, int]:
    """Low bits to send as they are, and the bit length of what is above them, rounding included."""
    return (0, longest) if longest <= LEARNED else (longest - LEARNED, LEARNED + 1)
