from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core import arrays
from mpi_compress.kernels import vectors as kernels
from mpi_compress.messages.kinds.base import Compressed, Vector

LEAST, MOST = -1074, 1023  # the exponents of floats, denormals included
MOST_FRACTION = 16
EXPONENT_BITS = {16: 5, 32: 8, 64: 11}  # of IEEE's floats


@dataclass(frozen=True, eq=False)
class Powers(Compressed):
    """v_j = ±2^e (1 + m/2^fraction), m < 2^fraction: a sign, an exponent and the first digits after the point, or 0.

    integers[j] = ±(2^fraction (e − least) + m + 1), 0 for v_j = 0. A vector with NaN or infinity is NaN in all coordinates.

    Paper bits: d(1 + fraction + the exponent's bits in a float of FPP bits: 5, 8 or 11), Natural compression (Horváth et al.
    2019): 9d for floats of 32 bits, 12d for 64.
    """

    integers: NDArray[np.int32]  # (d,)
    least: int  # the least exponent
    fraction: int = 0  # known to both ends
    finite: bool = True

    @property
    def dim(self) -> int:
        return self.integers.size

    @property
    def elements(self) -> int:
        return int(np.count_nonzero(self.integers))

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
        most = (MOST + 1 - self.least) << self.fraction
        if not (LEAST <= self.least <= MOST and 0 <= self.fraction <= MOST_FRACTION):
            raise ValueError(f"least = {self.least} and fraction = {self.fraction} are not those of floats")
        integers = arrays.whole(self.integers, (dim,), "integers", -most, most)
        return Powers(integers.astype(np.int32, copy=False), int(self.least), int(self.fraction), bool(self.finite))
