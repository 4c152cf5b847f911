"""x* and f* of the hinge SVM, which has no gradient to bring to zero; a duality gap bounds the error.

    P(x) = (1/N) Σ max(1 − y_i a_i·x, 0) + (µ/2)‖x‖²
    D(α) = Σ α_i − (µ/2)‖x(α)‖²,   x(α) = (1/µ) Σ α_i y_i a_i,   0 ≤ α_i ≤ 1/N

D(α) ≤ f* ≤ P(x) for any α and x, so P − D bounds the error of P, whatever method found them.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy  # which loads linalg where it is first used

from mpi_compress.core.progress import ignore
from mpi_compress.kernels import rows as kernels
from mpi_compress.kernels.vectors import squared_norm
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.optimum.base import EPS, Optimum, Tell
from mpi_compress.problem.second_order import dense_hessian

GAP = 1e-10  # of P(0) = 1
_INTERIOR_UP_TO = 2500  # d for which a dense (d, d) system is formed
_INTERIOR_STEPS = 100
_PASSES = 20_000
_LOOK_EVERY = 10


def minimize(f: Objective, tell: Tell = ignore) -> Optimum:
    """x* and f*, by an interior-point method for small d, then dual coordinate ascent; with µ = 0 the gap stays at 1."""
    best = _Bracket(np.zeros(f.dim), 1.0, 1.0)
    if f.mu > 0:
        x, alpha = _interior_point(f) if f.dim <= _INTERIOR_UP_TO else (np.zeros(f.dim), np.full(len(f.rows), f.weight / 2))
        best = _bracket(f, alpha, x)
        best = best if best.gap <= GAP else _coordinate_ascent(f, alpha, best, tell)
    return Optimum(best.x, best.value, best.gap + 4 * EPS * best.value, best.gap)


class _Bracket(NamedTuple):
    """A point and what is known of f* there."""

    x: Vector  # (d,)
    value: float  # P(x)
    gap: float  # P(x) − D(α) for the α that was looked at


def _bracket(f: Objective, alpha: Vector, other: Vector | None = None) -> _Bracket:
    """The better of x(α) and another x."""
    x = _combined(f, alpha) / f.mu
    dual = float(np.sum(alpha)) - 0.5 * f.mu * squared_norm(x)
    found = [(f.value_and_gradient(z)[0], z) for z in ([x] if other is None else [x, other])]
    value, x = min(found, key=lambda pair: pair[0])
    return _Bracket(x, value, max(0.0, value - dual))


def _coordinate_ascent(f: Objective, alpha: Vector, best: _Bracket, tell: Tell) -> _Bracket:
    """Passes in random order, until the gap is small or the passes are used up."""
    matrix, labels = f.rows.matrix, f.rows.labels
    squares = np.empty(len(f.rows))
    kernels.squared_norms(matrix, squares)
    rng = np.random.default_rng(0)
    x = _combined(f, alpha) / f.mu
    for k in range(1, _PASSES + 1):
        order = rng.permutation(len(f.rows)).astype(np.uint64)
        still = kernels.ascend(matrix, labels, squares, order, f.mu, f.weight, alpha, x) == 0
        if k % _LOOK_EVERY == 0 or still:
            best = min(best, _bracket(f, alpha), key=lambda b: b.gap)
            if still or best.gap <= GAP:
                break
            tell(math.log(best.gap) / math.log(GAP))
            x = _combined(f, alpha) / f.mu  # without the rounding of many small steps
    return best


@dataclass
class _Point:
    """An interior point: µ x = Bᵀα, B x + ξ − 1 = s and α s = τ = β ξ hold in the limit, with b_i = y_i a_i, β = 1/N − α."""

    x: Vector  # (d,)
    alpha: Vector  # (N,), like those below
    beta: Vector
    s: Vector
    xi: Vector

    def moved(self, t: float, by: "_Point") -> "_Point":
        return _Point(*(a + t * d for a, d in zip(vars(self).values(), vars(by).values(), strict=True)))

    @property
    def tau(self) -> float:
        return float(self.alpha @ self.s + self.beta @ self.xi) / (2 * self.s.size)

    def longest(self, by: "_Point") -> float:
        """The largest t ≤ 1 that keeps α, β, s, ξ ≥ 0."""
        t = 1.0
        for key in ("alpha", "beta", "s", "xi"):
            now, change = getattr(self, key), getattr(by, key)
            falling = change < 0
            if np.any(falling):
                t = min(t, float(np.min(-now[falling] / change[falling])))
        return t


def _interior_point(f: Objective) -> tuple[Vector, Vector]:
    """x (d,) and α (N,) by Mehrotra's predictor and corrector (SIAM J. Optim. 2, 1992), until rounding stops it. A step solves
    (µI + BᵀΘB) dx = −µx + Bᵀ(α + Θρ) for Θ = 1/(s/α + ξ/β); the other parts follow from dx."""
    n, cap = len(f.rows), f.weight
    p = _Point(np.zeros(f.dim), np.full(n, cap / 2), np.full(n, cap / 2), np.ones(n), np.ones(n))
    for _ in range(_INTERIOR_STEPS):
        if p.tau < 1e-3 * GAP * cap:
            break
        theta = 1.0 / (p.s / p.alpha + p.xi / p.beta)
        try:
            factor = scipy.linalg.cho_factor(dense_hessian(f, theta), check_finite=False)
        except np.linalg.LinAlgError:
            break
        ahead = _direction(f, p, theta, factor, 0.0, 0.0)
        aim = p.tau * (p.moved(p.longest(ahead), ahead).tau / p.tau) ** 3
        step = _direction(f, p, theta, factor, aim - ahead.alpha * ahead.s, aim - ahead.beta * ahead.xi)
        t = 0.9995 * p.longest(step)
        after = p.moved(t, step)
        if t < 1e-6 or not np.isfinite(after.tau):
            break
        p = after
    return p.x, np.clip(p.alpha, 0.0, cap)


def _direction(f: Objective, p: _Point, theta: Vector, factor: Any, to_s: Any, to_xi: Any) -> _Point:
    """Newton's direction towards α s = to_s and β ξ = to_xi."""
    off = f.rows.labels * f.rows.margins(p.x) + p.xi - 1.0 - p.s
    rho = to_s / p.alpha - p.s - off - to_xi / p.beta + p.xi
    rhs = _combined(f, p.alpha + theta * rho) - f.mu * p.x
    x = scipy.linalg.cho_solve(factor, rhs, check_finite=False)
    along = f.rows.labels * f.rows.margins(x)
    alpha = theta * (rho - along)
    xi = (to_xi - p.beta * p.xi + p.xi * alpha) / p.beta
    return _Point(x, alpha, -alpha, along + xi + off, xi)


def _combined(f: Objective, weights: Vector) -> Vector:
    out = np.empty(f.dim)
    kernels.weighted_sum(f.rows.matrix, f.rows.labels * weights, out)
    return out
