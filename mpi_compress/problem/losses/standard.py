

import math
from dataclasses import dataclass

from mpi_compress.kernels.losses import HINGE, LEAST_SQUARES, LOGISTIC, LOGISTIC_BASE2, SQUARED_HINGE
from mpi_compress.problem.losses.base import Loss, losses


@losses.register("hinge")
@dataclass(frozen=True)
class Hinge(Loss):
    """The hinge loss of a support vector machine, which has a corner at y m = 1."""

    formula = "max(1 − y m, 0)"
    kernel = HINGE
    curvature = math.inf
    solver = "hinge-dual"


@losses.register("least-squares")
@dataclass(frozen=True)
class LeastSquares(Loss):
    """Half of the squared error, of real labels."""

    formula = "½ (m − y)²"
    kernel = LEAST_SQUARES
    curvature = 1.0
    solver = "newton"
    real_labels = True


@losses.register("logistic")
@dataclass(frozen=True)
class Logistic(Loss):
    """The logistic loss, of labels ±1."""

    formula = "log(1 + exp(−y m))"
    kernel = LOGISTIC
    curvature = 0.25
    solver = "newton"


@losses.register("logistic-base2")
@dataclass(frozen=True)
class LogisticBase2(Loss):
    """The logistic loss in bits: 1 at a margin of 0."""

    formula = "log2(1 + exp(−y m))"
    kernel = LOGISTIC_BASE2
    curvature = 0.25 / math.log(2.0)
    solver = "newton"


@losses.register("squared-hinge")
@dataclass(frozen=True)
class SquaredHinge(Loss):
    """The squared hinge loss of a support vector machine."""

    formula = "max(1 − y m, 0)²"
    kernel = SQUARED_HINGE
    curvature = 2.0
    solver = "newton"
