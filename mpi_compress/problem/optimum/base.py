"""What solvers find, what they share, the x* of a model that gives its minimiser in closed form, and the lowest f of a long run."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy  # which loads optimize where it is first used

from mpi_compress.core.progress import ignore
from mpi_compress.kernels.vectors import norm, squared_norm
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.penalties import Penalty

_SOLVED_AT_ONCE = 5_000_000
_STEPS = 5000
_PAIRS = 20  # that L-BFGS keeps
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
    attained: bool = True  # False: f* is the infimum, which f(t·x) comes near to as t grows; there is no minimiser


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


def lowest_seen(f: Objective, x0: Vector, apart: Penalty | None = None) -> Optimum:
    """The lowest f that a long run sees, where no solver is known: an upper bound on f*, and nothing more. Takes 5000 steps of
    L-BFGS from x0 (d,), or of FISTA where a penalty that is not smooth is added to f. The accuracy is NaN: f* may be lower."""
    first = norm(f.value_and_gradient(x0)[1])
    if apart is None:
        x = lbfgs(partial(value_and_gradient, f), x0, maxiter=_STEPS, maxfun=2 * _STEPS, maxcor=_PAIRS, gtol=0.0)
    else:
        x = _by_fista(f, x0, apart)
    value, g = f.value_and_gradient(x)
    return Optimum(x, value + (apart.value(x) if apart else 0.0), math.nan, norm(g) / first if first else 0.0)


def lbfgs(function: Callable[[Vector], tuple[float, Vector]], x0: Vector, **options: float) -> Vector:
    """Where SciPy's L-BFGS ends that minimises a function, given with its gradient, from x0 (d,)."""
    return scipy.optimize.minimize(function, x0, jac=True, method="L-BFGS-B", options={"ftol": 0.0, **options}).x


def _by_fista(f: Objective, x0: Vector, r: Penalty) -> Vector:
    """Beck and Teboulle (2009), with backtracking, and a restart where the step turns against the last one."""
    x, y, t, L = x0.copy(), x0.copy(), 1.0, 1.0
    for _ in range(_STEPS):
        value, g = value_and_gradient(f, y)
        while True:
            new = r.prox(y - g / L, 1.0 / L)
            step = new - y
            if f.value_and_gradient(new)[0] <= value + float(np.sum(g * step)) + 0.5 * L * squared_norm(step) * (1 + 1e-12):
                break
            L *= 2.0
            if not math.isfinite(L):
                return x
        if not np.any(new - x):
            return x
        t = 1.0 if float(np.sum((y - new) * (new - x))) > 0 else t
        after = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * t * t))
        y, x, t, L = new + (t - 1.0) / after * (new - x), new, after, 0.9 * L
    return x
