"""What solvers find, what they share, and the x* of a model that gives its minimiser in closed form."""

from dataclasses import dataclass

import numpy as np

from mpi_compress.kernels.vectors import norm
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.objective import Objective

EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Optimum:
    """x* and f*, as a solver found them."""

    x: Vector  # (d,)
    f: float
    accuracy: float  # bounds f(x) − f* and the rounding of f: a smaller suboptimality is not progress
    reached: float  # the solver's measure of the error, over its value at 0: ‖∇f(x)‖ or the duality gap


def value_and_gradient(f: Objective, x: Vector) -> tuple[float, Vector]:
    """f(x), and ∇f(x) (d,) in memory of its own."""
    value, g = f.value_and_gradient(x)
    return value, g.copy()


def minimize(f: Objective) -> Optimum:
    """x* and f* by the model's own formula; the accuracy is the rounding of f."""
    x = f.term.loss.minimise(f.rows, f.mu)
    first = norm(f.value_and_gradient(np.zeros(f.dim))[1])
    value, g = f.value_and_gradient(x)
    return Optimum(x, value, 4 * EPS * abs(value), norm(g) / first if first else 0.0)
