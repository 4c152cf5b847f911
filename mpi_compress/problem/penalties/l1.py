import numpy as np

from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.penalties.base import Penalty, penalties


@penalties.register("l1")
class L1(Penalty):
    """Lasso: Tibshirani (1996); its prox is soft thresholding."""

    formula = "λ ‖x‖₁"

    def value(self, x: Vector) -> float:
        return self.λ * float(np.sum(np.abs(x)))

    def prox(self, x: Vector, γ: float) -> Vector:
        return np.sign(x) * np.maximum(np.abs(x) - γ * self.λ, 0.0)
