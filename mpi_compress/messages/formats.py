"""Formats of floats on the wire, by the `float` of a codec."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Setting = Literal[16, "bf16", 32, 64]
LEAST, MOST = -1074, 1023  # the exponents of floats of 64 bits, denormals included


@dataclass(frozen=True)
class FloatFormat:
    """A binary format of floats, to which values are rounded: to nearest, ties to even. A value x with `least` ≤ |x| ≤ `largest`
    becomes x(1 + e), |e| ≤ u = 2^−precision; a smaller one has an error up to u·least. A value that would round to infinity is
    refused."""

    setting: Setting  # what jobs write
    text: str  # what messages to users say
    bits: int  # on the wire
    precision: int  # binary digits of a significand
    least: float  # the least normal number
    largest: float  # the largest finite number

    @property
    def u(self) -> float:
        """The unit roundoff: the largest relative error of rounding in the normal range."""
        return 2.0**-self.precision

    @cached_property
    def nbytes(self) -> int:
        """Bytes on the wire."""
        return self.bits // 8


def _ieee(setting: Setting, text: str, bits: int, precision: int) -> FloatFormat:
    top = 2 ** (bits - precision - 1) - 1  # the largest exponent
    return FloatFormat(setting, text, bits, precision, 2.0 ** (1 - top), (2 - 2.0 ** (1 - precision)) * 2.0**top)


FORMATS: dict[Setting, FloatFormat] = {
    16: _ieee(16, "float of 16 bits", 16, 11),
    "bf16": _ieee("bf16", "bfloat16", 16, 8),
    32: _ieee(32, "float of 32 bits", 32, 24),
    64: _ieee(64, "float of 64 bits", 64, 53),
}


def that_hold(value: float) -> str:
    """The settings of `float` whose range has the finite `value`, as text: "32 or 64"."""
    able = [f'"{name}"' if isinstance(name, str) else str(name) for name, f in FORMATS.items() if abs(value) <= f.largest]
    return " or ".join([", ".join(able[:-1]), able[-1]] if len(able) > 1 else able)
