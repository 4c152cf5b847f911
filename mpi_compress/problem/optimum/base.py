"""What solvers find, what they share, and the x* of a model that gives its minimiser in closed form."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mpi_compress.core.progress import ignore
from mpi_compress.kernels.vectors import norm
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.objective import Objective

_SOLVED_AT_ONCE = 5_000_000
Tell = Callable[[float], None]
"""Takes the share of its work that a solver has done, as the decades that its measure has come down."""
EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Optimum:
    """x* and f*, as a solver found them."""

    x: Vector  # (d,)
    f: float
    accuracy: float  # bounds f(x) − f* and the rounding of f: a smaller suboptimality is not progress
    reached: float  # the solver's measure of the error, over its value at 0: ‖∇f(x)‖ or the duality gap


def is_soon_solved(nonzeros: int, features: int, dim: int) -> bool:
    """True if x* (dim,) takes seconds, as one gradient does little: nonzeros for each class of a model, and 20 a coordinate."""
    return nonzeros * max(1, dim // features) + 20 * dim <= _SOLVED_AT_ONCE


def value_and_gradient(f: Objective, x: Vector) -> tuple[float, Vector]:
    """f(x), and ∇f(x) (d,) in memory of its own."""
    value, g = f.value_and_gradient(x)
    return value, g.copy()


def minimize(f: Objective, tell: Tell = ignore) -> Optimum:
    """x* and f* by the model's own formula; the accuracy is the rounding of f."""
    x = f.term.loss.minimise(f.rows, f.mu)
    first = norm(f.value_and_gradient(np.zeros(f.dim))[1])
    value, g = f.value_and_gradient(x)
    return Optimum(x, value, 4 * EPS * abs(value), norm(g) / first if first else 0.0)
