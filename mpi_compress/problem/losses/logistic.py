from mpi_compress.kernels.losses import LOGISTIC
from mpi_compress.problem.losses.base import Loss, losses


@losses.register("logistic")
class Logistic(Loss):
    """The logistic loss, of labels ±1."""

    formula = "log(1 + exp(−y m))"
    kernel = LOGISTIC
    curvature = 0.25
    solver = "newton"
