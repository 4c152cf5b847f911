"""Powers of two with the first digits after the point."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core import arrays
from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import vectors as kernels
from mpi_compress.messages.fields import Reader, one_byte, read_exponent, signed_fields
from mpi_compress.messages.formats import LEAST, MOST, FloatFormat
from mpi_compress.messages.kinds.base import Bytes, Known, Vector
from mpi_compress.messages.kinds.grids import Integral

__all__ = ["Powers"]

MOST_FRACTION = 16
NO_EXPONENT, NOT_FINITE = -(2**15), 255  # the least exponent, and the width of fields, of powers that are not finite
EXPONENT_BITS = {16: 5, 32: 8, 64: 11}  # the exponent bits of IEEE's floats


@dataclass(frozen=True, eq=False)
class Powers(Integral):
    """v_j = ±2^e (1 + m/2^fraction), m < 2^fraction: a sign, an exponent and the first digits after the point, or 0.

    integers[j] = ±(2^fraction (e − least) + m + 1), 0 for v_j = 0. A vector with NaN or infinity is NaN in all coordinates.

    Paper bits: d(1 + fraction + the exponent's bits in a float of FPP bits: 5, 8 or 11), Natural compression (Horváth et al.
    2019): 9d for floats of 32 bits, 12d for 64.

    Packed: the width w in a byte, the least exponent in two, d signs with w bits each; w holds the vector's own range of exponents,
    so that it is mostly below the 8 or 11 bits that the paper counts. w = 0: all are 0.
    """

    numbers, layouts = "integers", ("packed", "entropy")
    integers: NDArray[np.int32]  # (d,)
    least: int  # the least exponent
    fraction: int = 0  # known to both ends
    finite: bool = True

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        kernels.dense_add(self._values, scale, out)

    @property
    def _values(self) -> Vector:
        if not self.finite:
            return np.full(self.dim, np.nan)
        at = np.abs(self.integers) - 1
        digits = (at & ((1 << self.fraction) - 1)) + (1 << self.fraction)
        sizes = np.ldexp(digits.astype(np.float64), self.least - self.fraction + (at >> self.fraction))
        return np.sign(self.integers) * np.where(at < 0, 0.0, sizes)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> float:
        return self.integers.size * (1 + self.fraction + EXPONENT_BITS[fpp])

    def is_finite(self) -> bool:
        return self.finite

    def checked(self, dim: int) -> "Powers":
        if not (LEAST <= self.least <= MOST and 0 <= self.fraction <= MOST_FRACTION):
            raise ValueError(f"least = {self.least} and fraction = {self.fraction} are not those of floats")
        most = largest_power(int(self.least), int(self.fraction))
        integers = arrays.whole(self.integers, (dim,), "integers", -most, most)
        return Powers(integers.astype(np.int32, copy=False), int(self.least), int(self.fraction), bool(self.finite))

    def head(self, form: FloatFormat) -> Bytes:
        return np.array([self.least if self.finite else NO_EXPONENT], dtype="<i2").view(np.uint8)

    @classmethod
    def read_head(cls, r: Reader, dim: int, known: Known) -> tuple[int, Callable[[NDArray[Any]], Self]]:
        least, fraction = read_exponent(r, NO_EXPONENT), known["fraction"]
        if least == NO_EXPONENT:
            return 0, partial(cls, least=0, fraction=fraction, finite=False)
        return largest_power(least, fraction), partial(cls, least=least, fraction=fraction)

    def write(self, form: FloatFormat) -> Bytes:
        width = int(np.max(np.abs(self.integers))).bit_length() if self.finite else NOT_FINITE
        start = one_byte(width)
        return start if width in (0, NOT_FINITE) else np.concatenate([start, self.head(form), signed_fields(self.integers, width)])

    @classmethod
    def read(cls, r: Reader, dim: int, known: Known) -> Self:
        width = r.byte(NOT_FINITE, "width of fields")
        if width in (0, NOT_FINITE):
            return cls(np.zeros(dim, dtype=np.int32), 0, known["fraction"], finite=width == 0)
        if width > 31:
            raise CorruptMessage(f"{width} bits are no width of fields")
        least = read_exponent(r)
        return cls(r.signed(dim, width, largest_power(least, known["fraction"])), least, known["fraction"])


def largest_power(least: int, fraction: int) -> int:
    """The largest magnitude of the integers of `Powers`."""
    return (MOST + 1 - least) << fraction
