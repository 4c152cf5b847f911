"""Powers of two with the first digits after the point."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core import arrays
from mpi_compress.core.errors import CorruptMessage
from mpi_compress.kernels import vectors as kernels
from mpi_compress.messages import fields as written
from mpi_compress.messages.fields import Field, Reader, read_exponent
from mpi_compress.messages.formats import LEAST, MOST, FloatFormat
from mpi_compress.messages.kinds.base import Places, SideInfo, Vector
from mpi_compress.messages.kinds.grids import Whole

__all__ = ["Powers"]

MOST_FRACTION = 16
NO_EXPONENT, NOT_FINITE = -(2**15), 255  # the least exponent, and the width of fields, of powers that are not finite
EXPONENT_BITS = {16: 5, 32: 8, 64: 11}  # the exponent bits of IEEE's floats


@dataclass(eq=False)
class Powers(Whole):
    """v_j = ±2^e (1 + m/2^fraction), m < 2^fraction: a sign, an exponent and the first digits after the point, or 0.

    integers[j] = ±(2^fraction (e − least) + m + 1), 0 for v_j = 0. A vector with NaN or infinity is NaN in all coordinates.

    Paper bits: d(1 + fraction + the exponent's bits in a float of FPP bits: 5, 8 or 11), Natural compression (Horváth et al.
    2019): 9d for floats of 32 bits, 12d for 64.

    Packed: the width w in a byte, the least exponent in two, d signs with w bits each; w holds the vector's own range of exponents,
    so that it is mostly below the 8 or 11 bits that the paper counts. w = 0: all are 0.
    """

    numbers, layouts, shared = "integers", ("packed", "entropy"), ("fraction",)
    integers: NDArray[np.int32]  # (d,)
    least: Any  # the least exponent
    fraction: int = 0  # known to both ends
    finite: Any = True

    def add_rows(self, out: Vector, scale: float, to: Places) -> None:
        kernels.powers_add(self.integers, self.least, self.fraction, self.finite, scale, to, out)

    def paper_bits(self, fpp: int, indices_counted: bool = True) -> Any:
        return self.all_elements * (1 + self.fraction + EXPONENT_BITS[fpp])

    def is_finite(self) -> Any:
        return self.finite

    def checked(self, dim: int) -> "Powers":
        if not (LEAST <= self.least <= MOST and 0 <= self.fraction <= MOST_FRACTION):
            raise ValueError(f"least = {self.least} and fraction = {self.fraction} are not those of floats")
        most = largest_power(int(self.least), int(self.fraction))
        integers = arrays.whole(self.integers, (dim,), "integers", -most, most)
        return Powers(integers.astype(np.int32, copy=False), int(self.least), int(self.fraction), bool(self.finite))

    def head(self, form: FloatFormat) -> Field:
        return written.wholes(np.where(self.finite, self.least, NO_EXPONENT), "<i2")

    @classmethod
    def read_head(cls, r: Reader, dim: int, known: SideInfo) -> tuple[Any, Callable[[NDArray], Self]]:
        least, fraction = read_exponent(r, NO_EXPONENT), known["fraction"]
        finite = least != NO_EXPONENT
        least = np.where(finite, least, 0)
        return np.where(finite, largest_power(least, fraction), 0), lambda integers: cls(integers, least, fraction, finite)

    def write(self, form: FloatFormat) -> list[Field]:
        largest = np.abs(self.integers).max(axis=1)
        widths = np.where(self.finite, np.frexp(largest)[1], NOT_FINITE)
        some = (widths > 0) & (widths < NOT_FINITE)
        fields = written.signed_fields(self.integers, widths * some)
        return [written.one_byte(widths), written.some_of(self.head(form), some), fields]

    @classmethod
    def read(cls, r: Reader, dim: int, known: SideInfo) -> Self:
        widths, fraction = r.bytes(NOT_FINITE, "width of fields"), known["fraction"]
        finite, some = widths < NOT_FINITE, (widths > 0) & (widths < NOT_FINITE)
        if (wrong := some & (widths > 31)).any():
            raise CorruptMessage(f"{widths[wrong][0]} bits are no width of fields")
        least = read_exponent(r, of=some)
        return cls(r.signed(dim, widths * some, largest_power(least, fraction)), least, fraction, finite)


def largest_power(least: Any, fraction: int) -> Any:
    """The largest magnitude of the integers of `Powers`."""
    return (MOST + 1 - least) << fraction
