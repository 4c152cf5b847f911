"""x* and f* of a smooth convex objective by Newton's method: exact for small d, with conjugate gradients otherwise."""

import math
import warnings
from contextlib import suppress

import numpy as np
import scipy  # which loads linalg and sparse where they are first used

from mpi_compress.core.progress import ignore
from mpi_compress.kernels.vectors import norm
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.models import Model
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.optimum.base import EPS, Optimum, Tell, is_soon_solved, value_and_gradient
from mpi_compress.problem.second_order import curvature_at, dense_hessian, hessian_at

GRADIENT_TOLERANCE = 1e-12  # ‖∇f(x*)‖ / ‖∇f(0)‖
DENSE_HESSIAN_UP_TO = 2500  # d
_STEPS = 200
_STEPS_OF_START, _PAIRS, _START = 300, 10, 1e-5  # of L-BFGS, and the ‖∇f(x)‖/‖∇f(0)‖ at which it ends
_SHORTEST = 1e-10  # share of a step
_FALLS = 0.1  # ‖∇f‖ by this factor: a rise of f by as much as its sum of N terms may be rounded is none
_STILL_FALLING = 0.9  # ‖∇f‖ must fall by this factor in a step that no longer lowers f: a smaller fall is rounding


def minimize(f: Objective, tell: Tell = ignore) -> Optimum:
    """x* and f*, until ‖∇f(x)‖ ≤ 1e-12 ‖∇f(0)‖ or rounding stops it.

    The accuracy is the square of the Newton decrement: twice f(x) − f* where f is quadratic, and all of it on an exponential tail,
    where f* is not attained.
    """
    x = np.zeros(f.dim)
    first = norm(f.value_and_gradient(x)[1])
    if not is_soon_solved(f.rows.matrix[-1].size, f.rows.dim, f.dim):
        x = _near(f, first, tell)
    value, g = value_and_gradient(f, x)
    size = norm(g)
    decrement = 0.0
    for _ in range(_STEPS):
        if size <= GRADIENT_TOLERANCE * first:
            break
        tell(math.log(size / first) / math.log(GRADIENT_TOLERANCE))
        step = _newton_step(f, x, g, size / first)
        decrement = -float(step @ g)
        lower = _search(f, x, step, value, size, decrement)
        if lower is None:
            break
        x, value, g = lower
        size = norm(g)
    if size > 0:
        decrement = -float(_newton_step(f, x, g, 1e-8) @ g)
    return Optimum(x, value, abs(decrement) + 4 * EPS * abs(value), size / first if first else 0.0)


def _near(f: Objective, first: float, tell: Tell) -> Vector:
    """A point (d,) by L-BFGS, from which Newton's steps converge at once; from 0 they may overshoot many times."""

    def said(x: Vector) -> tuple[float, Vector]:
        value, g = value_and_gradient(f, x)
        tell(math.log(max(norm(g) / first, GRADIENT_TOLERANCE)) / math.log(GRADIENT_TOLERANCE) if first else 1.0)
        return value, g

    options = {"maxiter": _STEPS_OF_START, "maxcor": _PAIRS, "ftol": 0.0, "gtol": _START * first / math.sqrt(f.dim)}
    return scipy.optimize.minimize(said, np.zeros(f.dim), jac=True, method="L-BFGS-B", options=options).x


def _search(
    f: Objective, x: Vector, step: Vector, value: float, size: float, decrement: float
) -> tuple[Vector, float, Vector] | None:
    """The next x (d,) with f and ∇f there; None if no part of the step is progress.

    The step is halved until f falls enough or, once f has stopped falling because of rounding, until ‖∇f‖ does.
    """
    rounding = 8 * EPS * abs(value)
    t = 1.0
    while t > _SHORTEST:
        new_x = x + t * step
        new_value, g = value_and_gradient(f, new_x)
        falls = new_value <= value - 1e-4 * t * decrement and decrement > rounding
        if falls or (new_value <= value + rounding and norm(g) < _STILL_FALLING * size):
            return new_x, new_value, g
        if new_value <= value + len(f.rows) * EPS * abs(value) and norm(g) < _FALLS * size:  # f is a long sum
            return new_x, new_value, g
        t /= 2
    return None


def _newton_step(f: Objective, x: Vector, g: Vector, relative: float) -> Vector:
    """−H⁻¹g; by conjugate gradients to a precision that grows as ∇f falls, so that convergence stays superlinear."""
    if f.dim <= DENSE_HESSIAN_UP_TO and not isinstance(f.loss, Model):
        hessian = dense_hessian(f, curvature_at(f, x))
        jitter = 1e-14 * np.trace(hessian) / f.dim if f.mu == 0 else 0.0
        with suppress(np.linalg.LinAlgError), warnings.catch_warnings():
            warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)  # the gradient after a poor step shows that it was poor
            return scipy.linalg.solve(hessian + jitter * np.eye(f.dim), -g, assume_a="pos")
    solvers = scipy.sparse.linalg
    product = hessian_at(f, x)
    operator = solvers.LinearOperator((f.dim, f.dim), matvec=lambda v: product(v.ravel()), dtype=np.float64)
    with np.errstate(all="ignore"):  # what comes of a direction of no curvature is no descent, and is seen below
        step, _ = solvers.cg(operator, -g, rtol=min(0.1, max(relative, 1e-9) ** 0.5), maxiter=2000)
    return step if step @ g < 0 else -g
