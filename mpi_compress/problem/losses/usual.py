"""The losses that come along. Those that have a row in `kernels.losses` are computed in one pass over the samples."""

import math

import numpy as np

from mpi_compress.core.fields import Positive
from mpi_compress.kernels.losses import HINGE, LEAST_SQUARES, LOGISTIC, LOGISTIC_BASE2, SMOOTH_HINGE, SQUARED_HINGE, SQUARED_SIGMOID
from mpi_compress.problem.losses.base import Loss, Vector, losses


@losses.register("hinge")
class Hinge(Loss):
    """The hinge loss of a support vector machine, which has a corner at y m = 1."""

    formula = "max(1 − y m, 0)"
    kernel = HINGE
    solver = "hinge-dual"


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


@losses.register("least-squares")
class SquaredError(Loss):
    """Half of the squared error, of real labels."""

    formula = "½ (m − y)²"
    kernel = LEAST_SQUARES
    curvature = 1.0
    third = 0.0
    solver = "newton"
    real_labels = True


@losses.register("logistic")
class Logistic(Loss):
    """The logistic loss, of labels ±1."""

    formula = "log(1 + exp(−y m))"
    kernel = LOGISTIC
    curvature = 0.25
    third = 1 / (6 * math.sqrt(3.0))
    solver = "newton"


@losses.register("logistic-base2")
class LogisticBase2(Loss):
    """The logistic loss in bits: 1 at a margin of 0."""

    formula = "log2(1 + exp(−y m))"
    kernel = LOGISTIC_BASE2
    curvature = 0.25 / math.log(2.0)
    solver = "newton"


@losses.register("smooth-hinge")
class SmoothHinge(Loss):
    """The hinge loss with its corner made smooth: Rennie and Srebro (2005)."""

    formula = "½ − y m where y m ≤ 0, ½ (1 − y m)² up to 1, then 0"
    kernel = SMOOTH_HINGE
    curvature = 1.0
    solver = "newton"


@losses.register("squared-hinge")
class SquaredHinge(Loss):
    """The squared hinge loss of a support vector machine."""

    formula = "max(1 − y m, 0)²"
    kernel = SQUARED_HINGE
    curvature = 2.0
    solver = "newton"


@losses.register("squared-sigmoid")
class SquaredSigmoid(Loss):
    """The nonconvex classification loss of the DASHA paper (Tyurin and Richtárik 2023), of labels ±1."""

    formula = "(1 − σ(y m))²,  σ(z) = 1 / (1 + exp(−z))"
    kernel = SQUARED_SIGMOID
    convex = False
    curvature = 0.15405857012134950  # max of 2 s² (1 − s) (2 − 3 s) over s in [0, 1]; the least is −0.1202
