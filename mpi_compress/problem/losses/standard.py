"""The losses of the papers; each is a branch of `kernels.losses`."""

import math

from mpi_compress.kernels.losses import HINGE, LEAST_SQUARES, LOGISTIC, LOGISTIC_BASE2, SQUARED_HINGE
from mpi_compress.problem.losses.base import Loss, losses


@losses.register("hinge")
class Hinge(Loss):
    """The hinge loss of a support vector machine, which has a corner at y m = 1."""

    formula = "max(1 − y m, 0)"
    kernel = HINGE
    solver = "hinge-dual"


@losses.register("least-squares")
class LeastSquares(Loss):
    """Half of the squared error, of real labels."""

    formula = "½ (m − y)²"
    kernel = LEAST_SQUARES
    curvature = 1.0
    solver = "newton"
    real_labels = True


@losses.register("logistic")
class Logistic(Loss):
    """The logistic loss, of labels ±1."""

    formula = "log(1 + exp(−y m))"
    kernel = LOGISTIC
    curvature = 0.25
    solver = "newton"


@losses.register("logistic-base2")
class LogisticBase2(Loss):
    """The logistic loss in bits: 1 at a margin of 0."""

    formula = "log2(1 + exp(−y m))"
    kernel = LOGISTIC_BASE2
    curvature = 0.25 / math.log(2.0)
    solver = "newton"


@losses.register("squared-hinge")
class SquaredHinge(Loss):
    """The squared hinge loss of a support vector machine."""

    formula = "max(1 − y m, 0)²"
    kernel = SQUARED_HINGE
    curvature = 2.0
    solver = "newton"
