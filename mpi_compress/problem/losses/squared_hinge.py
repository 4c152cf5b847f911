from mpi_compress.kernels.losses import SQUARED_HINGE
from mpi_compress.problem.losses.base import Loss, losses


@losses.register("squared-hinge")
class SquaredHinge(Loss):
    """The squared hinge loss of a support vector machine."""

    formula = "max(1 − y m, 0)²"
    kernel = SQUARED_HINGE
    curvature = 2.0
    solver = "newton"
