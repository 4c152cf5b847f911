"""x* and f* of the hinge SVM, which has no gradient to bring to zero; a duality gap bounds the error.

    P(x) = (1/N) Σ max(1 − y_i a_i·x, 0) + (µ/2)‖x‖²
    D(α) = Σ α_i − (µ/2)‖x(α)‖²,   x(α) = (1/µ) Σ α_i y_i a_i,   0 ≤ α_i ≤ 1/N

D(α) ≤ f* ≤ P(x) for any α and x, so P − D bounds the error of P, whatever method found them.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import scipy  # which loads linalg where it is first used

from mpi_compress.kernels import rows as kernels
from mpi_compress.problem.optimum.base import EPS, Objective, Optimum, Tell, Vector, ignore, squared_norm
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
    value, x = min(((f.value_and_gradient(z)[0], z) for z in (x, other) if z is not None), key=lambda found: found[0])
    return _Bracket(x, value, max(0.0, value - dual))


def _coordinate_ascent(f: Objective, alpha: Vector, best: _Bracket, tell: Tell) -> _Bracket:
    """Passes in random order, until the gap is small or the passes are used up."""
    matrix, labels = f.rows.matrix, f.rows.labels
    rng, squares = np.random.default_rng(0), f.rows.squares()
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


def _interior_point(f: Objective) -> tuple[Vector, Vector]:
    """x (d,) and α (N,) by Mehrotra's predictor and corrector (SIAM J. Optim. 2, 1992), until rounding stops it.

    Inside, z (4, N) holds α, β, s, ξ > 0; in the limit µ x = Bᵀα, B x + ξ − 1 = s and α s = τ = β ξ, with b_i = y_i a_i and
    β = 1/N − α. A step solves (µI + BᵀΘB) dx = −µx + Bᵀ(α + Θρ) for Θ = 1/(s/α + ξ/β); the other parts follow from dx.
    """
    cap = f.weight
    x, z = np.zeros(f.dim), np.repeat([[cap / 2], [cap / 2], [1.0], [1.0]], len(f.rows), axis=1)
    for _ in range(_INTERIOR_STEPS):
        (α, β, s, ξ), τ = z, _tau(z)
        if τ < 1e-3 * GAP * cap:
            break
        Θ = 1.0 / (s / α + ξ / β)
        try:
            factor = scipy.linalg.cho_factor(dense_hessian(f, Θ), check_finite=False)
        except np.linalg.LinAlgError:
            break
        _, ahead = _direction(f, x, z, Θ, factor, 0.0, 0.0)
        aim = τ * (_tau(z + _longest(z, ahead) * ahead) / τ) ** 3
        dx, dz = _direction(f, x, z, Θ, factor, aim - ahead[0] * ahead[2], aim - ahead[1] * ahead[3])
        t = 0.9995 * _longest(z, dz)
        after = z + t * dz
        if t < 1e-6 or not np.isfinite(_tau(after)):
            break
        x, z = x + t * dx, after
    return x, np.clip(z[0], 0.0, cap)


def _tau(z: Vector) -> float:
    α, β, s, ξ = z
    return float(α @ s + β @ ξ) / (2 * s.size)


def _longest(z: Vector, dz: Vector) -> float:
    """The largest t ≤ 1 that keeps z + t dz ≥ 0."""
    falling = dz < 0
    return float(np.min(-z[falling] / dz[falling], initial=1.0))


def _direction(f: Objective, x: Vector, z: Vector, Θ: Vector, factor: Any, to_s: Any, to_ξ: Any) -> tuple[Vector, Vector]:
    """Newton's direction of x and z towards α s = to_s and β ξ = to_ξ."""
    α, β, s, ξ = z
    off = f.rows.labels * f.rows.margins(x) + ξ - 1.0 - s
    ρ = to_s / α - s - off - to_ξ / β + ξ
    dx = scipy.linalg.cho_solve(factor, _combined(f, α + Θ * ρ) - f.mu * x, check_finite=False)
    along = f.rows.labels * f.rows.margins(dx)
    dα = Θ * (ρ - along)
    dξ = (to_ξ - β * ξ + ξ * dα) / β
    return dx, np.array([dα, -dα, along + dξ + off, dξ])


def _combined(f: Objective, weights: Vector) -> Vector:
    out = np.empty(f.dim)
    kernels.weighted_sum(f.rows.matrix, f.rows.labels * weights, out)
    return out
