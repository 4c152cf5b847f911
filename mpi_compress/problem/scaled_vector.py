from dataclasses import dataclass

import numpy as np

from mpi_compress.messages.kinds import Compressed, Vector

_LEAST = 1e-3  # a smaller scale is multiplied into v


@dataclass
class ScaledVector:
    """x = scale · v. A step of the regulariser is one multiplication, and a sparse update costs what it holds, whatever d."""

    v: Vector  # (d,)
    scale: float = 1.0

    @property
    def shape(self) -> tuple[int, ...]:
        return self.v.shape

    def shrink(self, factor: float, at_once: bool = False) -> None:
        """x ← factor · x; `at_once`: in v itself, so that the scale stays 1."""
        if not at_once and factor > _LEAST:
            self.scale *= factor
            factor = 1.0
            if self.scale < _LEAST:
                factor, self.scale = self.scale, 1.0
        if factor != 1.0:
            self.v *= factor

    def add(self, c: Compressed | Vector, factor: float) -> None:
        """x ← x + factor · c."""
        if isinstance(c, np.ndarray):
            self.v += (factor / self.scale) * c
        else:
            c.add_to(self.v, factor / self.scale)

    def dense(self) -> Vector:
        """x (d,); v itself where the scale is 1."""
        return self.v if self.scale == 1.0 else self.scale * self.v


AnyVector = Vector | ScaledVector


def dense(x: AnyVector) -> Vector:
    """x (d,), or (m, d), as an array."""
    return x.dense() if isinstance(x, ScaledVector) else x


def parts(x: AnyVector) -> tuple[Vector, float]:
    """z (d,) and a scale with x = scale · z."""
    return (x.v, x.scale) if isinstance(x, ScaledVector) else (x, 1.0)
