"""A vector that is shrunk in every round at the cost of one multiplication."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpi_compress.messages.kinds import Compressed

_LEAST = 1e-3  # a smaller scale is multiplied into v


@dataclass
class ScaledVector:
    """x = scale · v: a sparse update of x and a step of the regulariser then cost what the update holds, whatever d."""

    v: NDArray[np.float64]  # (d,)
    scale: float = 1.0

    def shrink(self, factor: float, at_once: bool = False) -> None:
        """x ← factor · x; `at_once`: in v itself, so that the scale stays 1."""
        if not at_once and factor > _LEAST:
            self.scale *= factor
            factor = 1.0
            if self.scale < _LEAST:
                factor, self.scale = self.scale, 1.0
        if factor != 1.0:
            self.v *= factor

    def add(self, c: "Compressed | NDArray[np.float64]", factor: float) -> None:
        """x ← x + factor · c."""
        if isinstance(c, np.ndarray):
            self.v += (factor / self.scale) * c
        else:
            c.add_to(self.v, factor / self.scale)

    def dense(self) -> NDArray[np.float64]:
        """x (d,); v itself where the scale is 1."""
        return self.v if self.scale == 1.0 else self.scale * self.v
