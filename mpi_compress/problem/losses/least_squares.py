from mpi_compress.kernels.losses import LEAST_SQUARES
from mpi_compress.problem.losses.base import Loss, losses


@losses.register("least-squares")
class SquaredError(Loss):
    """Half of the squared error, of real labels."""

    formula = "½ (m − y)²"
    kernel = LEAST_SQUARES
    curvature = 1.0
    solver = "newton"
    real_labels = True
