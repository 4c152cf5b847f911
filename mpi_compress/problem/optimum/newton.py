"""x* and f* of a smooth convex objective by Newton's method: exact for small d, with conjugate gradients otherwise."""

import math
from contextlib import suppress
from typing import Any

import numpy as np
import scipy  # which loads linalg and sparse where they are first used

from mpi_compress.problem.optimum.base import (
    EPS,
    Objective,
    Optimum,
    Tell,
    Vector,
    ignore,
    is_soon_solved,
    lbfgs,
    norm,
    value_and_gradient,
)
from mpi_compress.problem.second_order import curvature_at, dense_hessian, hessian_at

GRADIENT_TOLERANCE = 1e-12  # ‖∇f(x*)‖ / ‖∇f(0)‖
DENSE_HESSIAN_UP_TO = 2500  # d
_STEPS = 200
_STEPS_OF_START, _PAIRS = 300, 10  # of L-BFGS
_START, _START_OF_MODEL = 1e-5, 1e-1  # the ‖∇f(x)‖/‖∇f(0)‖ at which it ends
_SAMPLES, _ENOUGH = (64, 8), 1e-3  # one row of so many, and the ‖∇f(x)‖/‖∇f(0)‖ of a sample at which its steps end
_FAR = 2.0**10  # times an x on an exponential tail: f is 0 there
_ON_TAIL, _MOVES, _TAIL, _SAME = 1e-6, 1e-3, 64.0, 1e-10  # of a row: slope over the largest, moved by a step, by far; f may rise by
_SHORTEST = 1e-10  # share of a step
_FAST = 0.5  # ‖∇f‖ must fall by this factor in a step by an earlier H: else H is computed again
_FALLS = 0.1  # ‖∇f‖ by this factor: a rise of f by as much as its sum of N terms may be rounded is none
_STILL_FALLING = 0.9  # ‖∇f‖ must fall by this factor in a step that no longer lowers f: a smaller fall is rounding


def minimize(f: Objective, tell: Tell = ignore) -> Optimum:
    """x* and f*, until ‖∇f(x)‖ ≤ 1e-12 ‖∇f(0)‖ or rounding stops it. The accuracy is the square of the Newton decrement, twice
    f(x) − f* where f is quadratic. On an exponential tail, as where x separates the rows and µ = 0, f* = 0 is not attained; nor is
    f* > 0 where some rows can be separated and the others be left as they are."""
    x = np.zeros(f.dim)
    first = norm(f.value_and_gradient(x)[1])
    newton = _Newton(f)
    if not is_soon_solved(f.rows.matrix[-1].size, f.rows.dim, f.dim):
        newton.keeps = newton.is_dense
        if not f.loss.of_margin:
            x = _near(f, first, _START_OF_MODEL, tell)
        elif f.mu == 0:
            x = _near(f, first, _START, tell)
        elif newton.is_dense:
            x = _on_samples(newton)  # where d is large, L-BFGS's own vectors cost more than the products that they save
    x, value, g = _descend(newton, x, GRADIENT_TOLERANCE, first, tell)
    size = norm(g)
    if f.mu == 0 and 0 < f.value_and_gradient(2 * x)[0] < value / 2 and f.value_and_gradient(_FAR * x)[0] == 0:
        return Optimum(x, 0.0, 0.0, size / first, attained=False)
    step = newton.step(x, g, 1e-8) if size > 0 else np.zeros(f.dim)
    if f.mu == 0 and f.loss.of_margin and (further := _beyond(f, x, step, value)) is not None:
        return Optimum(x, further, value - further + 4 * EPS * value, size / first, attained=False)
    decrement = -float(step @ g)
    return Optimum(x, value, abs(decrement) + 4 * EPS * abs(value), size / first if first else 0.0)


def _beyond(f: Objective, x: Vector, step: Vector, value: float) -> float | None:
    """f far along Newton's last step from x (d,), where rows on an exponential tail go further out there, as by about 1 at each of
    its steps, and f does not rise; None: x is near a minimiser."""
    slopes = np.abs(f.loss.value_and_slope(f.rows.labels, f.rows.margins(x))[1])
    moved = np.abs(f.rows.margins(step))[(slopes > 0) & (slopes < _ON_TAIL * slopes.max())].max(initial=0.0)
    if not _MOVES < moved < math.inf:
        return None
    far = f.value_and_gradient(x + step * (_TAIL / moved))[0]
    return min(far, value) if far <= value * (1 + _SAME) else None


def _descend(newton: "_Newton", x: Vector, tolerance: float, first: float, tell: Tell = ignore) -> tuple[Vector, float, Vector]:
    """x (d,) with f and ∇f there, by steps from a given x until ‖∇f‖ ≤ tolerance · first, or rounding stops them."""
    f = newton.f
    value, g = value_and_gradient(f, x)
    for _ in range(_STEPS):
        size = norm(g)
        if size <= tolerance * first:
            break
        tell(math.log(size / first) / math.log(tolerance))
        step = newton.step(x, g, size / first)
        lower = _search(f, x, step, value, size, -float(step @ g))
        if lower is None and newton.is_fresh:
            break
        if lower is None or norm(lower[2]) > _FAST * size:
            newton.factor = None
        x, value, g = lower or (x, value, g)
    return x, value, g


def _on_samples(newton: "_Newton") -> Vector:
    """A point (d,) near x*, for the price of a few gradients: the minimiser on one row of 64, and from there that on one of 8. The
    factor of the last sample's H is `newton`'s first one."""
    f = newton.f
    x = np.zeros(f.dim)
    for every in _SAMPLES:
        rows = f.rows.take(np.arange(0, len(f.rows), every, dtype=np.uint64))
        sample = Objective(rows, f.loss, f.weight * len(f.rows) / len(rows), f.mu, f.penalty)
        first = norm(sample.value_and_gradient(np.zeros(f.dim))[1])
        of_sample = _Newton(sample, keeps=True)
        x, _, _ = _descend(of_sample, x, _ENOUGH, first)
        newton.factor = of_sample.factor
    return x


def _near(f: Objective, first: float, end: float, tell: Tell) -> Vector:
    """A point (d,) by L-BFGS with ‖∇f(x)‖ ≤ end · ‖∇f(0)‖, from which Newton's steps converge sooner than from 0."""

    def said(x: Vector) -> tuple[float, Vector]:
        value, g = value_and_gradient(f, x)
        tell(math.log(max(norm(g) / first, GRADIENT_TOLERANCE)) / math.log(GRADIENT_TOLERANCE) if first else 1.0)
        return value, g

    return lbfgs(said, np.zeros(f.dim), maxiter=_STEPS_OF_START, maxcor=_PAIRS, gtol=end * first / math.sqrt(f.dim))


def _search(
    f: Objective, x: Vector, step: Vector, value: float, size: float, decrement: float
) -> tuple[Vector, float, Vector] | None:
    """The next x (d,) with f and ∇f there; None if no part of the step is progress. The step is halved until f falls enough or,
    once f has stopped falling because of rounding, until ‖∇f‖ does."""
    rounding, t = EPS * abs(value), 1.0
    while t > _SHORTEST:
        new_x = x + t * step
        new_value, g = value_and_gradient(f, new_x)
        falls = new_value <= value - 1e-4 * t * decrement and decrement > 8 * rounding
        falls = falls or (new_value <= value + 8 * rounding and norm(g) < _STILL_FALLING * size)
        if falls or (new_value <= value + len(f.rows) * rounding and norm(g) < _FALLS * size):  # f is a long sum
            return new_x, new_value, g
        t /= 2
    return None


class _Newton:
    """Newton's steps −H⁻¹g on f: H is factored where d is small, and else met in products by conjugate gradients. A factor that is
    kept serves the steps from later points, too, until it is forgotten: with many rows, H takes as long as twenty gradients. The
    first one may be that of a sample of the rows."""

    def __init__(self, f: Objective, keeps: bool = False):
        self.f, self.keeps = f, keeps
        self.is_dense = f.dim <= DENSE_HESSIAN_UP_TO and f.loss.of_margin
        self.is_fresh = True  # the last step was by H at its own x
        self.factor: Any = None

    def step(self, x: Vector, g: Vector, relative: float) -> Vector:
        """−H⁻¹g (d,) at x; by conjugate gradients to a precision that grows as ∇f falls, so that convergence stays superlinear."""
        self.is_fresh = self.factor is None
        if self.is_dense:
            with suppress(np.linalg.LinAlgError):  # the gradient after a poor step shows that it was poor
                factor = self._factored(x) if self.is_fresh else self.factor
                self.factor = factor if self.keeps else None
                return scipy.linalg.cho_solve(factor, -g)
        solvers = scipy.sparse.linalg
        product = hessian_at(self.f, x)
        operator = solvers.LinearOperator((g.size, g.size), matvec=lambda v: product(v.ravel()), dtype=np.float64)
        with np.errstate(all="ignore"):  # what comes of a direction of no curvature is no descent, and is seen below
            step, _ = solvers.cg(operator, -g, rtol=min(0.1, max(relative, 1e-9) ** 0.5), maxiter=2000)
        return step if step @ g < 0 else -g

    def _factored(self, x: Vector) -> Any:
        """The Cholesky factor of H at x; LinAlgError if there is none."""
        hessian = dense_hessian(self.f, curvature_at(self.f, x))
        if self.f.mu == 0:
            hessian[np.diag_indices(x.size)] += 1e-14 * np.trace(hessian) / x.size
        return scipy.linalg.cho_factor(hessian)
