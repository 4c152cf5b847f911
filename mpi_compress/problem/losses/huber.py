import numpy as np

from mpi_compress.core.fields import Positive
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.losses.base import Loss, losses


@losses.register("huber")
class Huber(Loss):
    """Half of the squared error up to delta, and linear from there on, of real labels: Huber (1964)."""

    formula = "½ r² where |r| ≤ delta, else delta (|r| − ½ delta);  r = m − y"
    curvature = 1.0
    solver = "newton"
    real_labels = True
    delta: Positive = 1.0  # the residual |r| up to which the loss is quadratic, in the unit of the labels

    def value_and_slope(self, y: Vector, m: Vector) -> tuple[Vector, Vector]:
        r = m - y
        slopes = np.clip(r, -self.delta, self.delta)
        return slopes * (r - 0.5 * slopes), slopes

    def second_derivative(self, y: Vector, m: Vector) -> Vector:
        return (np.abs(m - y) <= self.delta).astype(float)
