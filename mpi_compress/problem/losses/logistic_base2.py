import math

from mpi_compress.kernels.losses import LOGISTIC_BASE2
from mpi_compress.problem.losses.base import Loss, losses


@losses.register("logistic-base2")
class LogisticBase2(Loss):
    """The logistic loss in bits: 1 at a margin of 0."""

    formula = "log2(1 + exp(−y m))"
    kernel = LOGISTIC_BASE2
    curvature = 0.25 / math.log(2.0)
    solver = "newton"
