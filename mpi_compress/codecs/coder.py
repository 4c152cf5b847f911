"""Integers by the adaptive range coder, as `entropy` and `lattice` write them."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.codecs.base import Bytes, readable, within
from mpi_compress.errors import CorruptMessage
from mpi_compress.kernels import adaptive as kernels

LONGEST = 32  # bits of a magnitude


def coded(write: Callable[[Any, Any], int], room: int, ahead: int = 0) -> Bytes:
    """What `write(digits, out)` wrote, after `ahead` free bytes, given more room until it suffices."""
    room += 2 * kernels.ROOM
    while True:
        out = np.empty(ahead + room, dtype=np.uint8)
        length = write(np.empty(room, dtype=np.uint16), out[ahead:])
        if length:
            return out[: ahead + length]
        room *= 2


def write_integers(integers: NDArray[Any], low_bits: int = 0) -> Bytes:
    """A byte for the bit length of the largest magnitude, then the integers (d,); that byte alone where all are 0.

    Raises:
        OverflowError: a magnitude of 2^32 or more once the low bits are cut off.
    """
    longest = kernels.longest(integers, low_bits)
    if longest > LONGEST:
        raise OverflowError(f"integers of {longest} bits are too long; at most {LONGEST} can be coded")
    if longest == 0 and low_bits == 0:
        return np.zeros(1, dtype=np.uint8)
    room = integers.size * (longest + low_bits + 4) // 16
    out = coded(lambda digits, out: kernels.write_integers(integers, low_bits, longest, digits, out), room, ahead=1)
    out[0] = longest
    return out


def read_integers(data: Bytes, at: int, integers: NDArray[Any], longest: int = LONGEST, low_bits: int = 0) -> int:
    """Fill `integers` (d,) from data[at] on. Returns where they end.

    Raises:
        CorruptMessage: bytes that `write_integers` cannot have written, or magnitudes of more than `longest` bits.
    """
    if at >= data.size or data[at] > longest:
        raise CorruptMessage(f"no bit length up to {longest} stands at byte {at} of {data.size}")
    if data[at] == 0 and low_bits == 0:
        integers[:] = 0
        return at + 1
    return within(kernels.read_integers(readable(data), at + 1, low_bits, int(data[at]), integers), data)
