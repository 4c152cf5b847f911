import numpy as np

from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.penalties.base import Penalty, penalties


@penalties.register("ratio")
class Ratio(Penalty):
    """The nonconvex penalty of the EF21, MARINA and DASHA papers; its second derivatives are within [−λ/2, 2λ]."""

    formula = "λ Σ x_j² / (1 + x_j²)"
    curvature = 2.0
    lowest = -0.5

    def value(self, x: Vector) -> float:
        return self.λ * float(np.sum(np.square(x / np.hypot(1.0, x))))

    def gradient(self, x: Vector) -> Vector:
        shorter = 1.0 / np.hypot(1.0, x)
        return 2.0 * self.λ * (x * shorter) * shorter**3
