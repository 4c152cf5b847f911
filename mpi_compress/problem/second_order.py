"""Second derivatives of f_i, matrices above them, and the noise of its sampled gradients."""

from collections.abc import Callable, Iterator

import numpy as np
import scipy  # which loads sparse where it is first used

from mpi_compress.kernels import rows as kernels
from mpi_compress.kernels.vectors import squared_norm
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.rows import Rows

_ROWS_AT_ONCE = 8192


def sampling_noise(f: Objective, x: Vector) -> float:
    """E‖g − ∇f_i(x)‖² for g the gradient of one row drawn uniformly."""
    n = len(f.rows)
    if not f.loss.of_margin:
        mean, total = f.value_and_gradient(x)[1], 0.0
        for j in range(n):
            g = np.zeros(f.dim)
            f.term.add_gradient(g, x, np.array([j], dtype=np.uint64), None)
            total += squared_norm(g - mean) / n
        return total
    slopes = f.term.loss.value_and_slope(f.rows.labels, f.rows.margins(x))[1]
    second_moment = 0.0
    for part, rows in _blocks(f.rows):
        second_moment += float(np.square(f.weight * n * slopes[part]) @ _squared_norms(rows)) / n
    mean = f.value_and_gradient(x)[1] - f.mu * x
    if f.penalty is not None:
        mean -= f.penalty.gradient(x)
    return max(second_moment - float(mean @ mean), 0.0)


def curvature_at(f: Objective, x: Vector) -> Vector:
    """weight · ∂²ℓ/∂m² of every sample at x, for `hessian_product`."""
    return f.term.loss.second_derivative(f.rows.labels, f.rows.margins(x)) * f.weight


def hessian_at(f: Objective, x: Vector) -> Callable[[Vector], Vector]:
    """v ↦ ∇²f_i(x) · v, both (d,)."""
    if not f.loss.of_margin:
        share, product = f.weight * len(f.rows), f.term.loss.hessian_at(x, f.rows)
        return lambda v: share * product(v) + f.mu * v
    curvature = curvature_at(f, x)
    return lambda v: hessian_product(f, curvature, v)


def hessian_product(f: Objective, curvature: Vector, v: Vector) -> Vector:
    """∇²f_i · v (d,), a new array."""
    out = np.empty(f.dim)
    kernels.gram_product(f.rows.matrix, curvature, v, out)
    out += f.mu * v
    return out


def dense_hessian(f: Objective, curvature: Vector) -> Vector:
    """∇²f_i (d, d) = Aᵀ diag(curvature) A + µI, for small d."""
    total = np.zeros((f.dim, f.dim))
    for part, rows in _blocks(f.rows):
        total += _gram(rows, curvature[part])
    total[np.diag_indices(f.dim)] += f.mu
    return total


def smoothness_diagonal(f: Objective) -> Vector:
    """A diagonal (d,) above L_i = weight · s AᵀA + µI, s the curvature that the loss states: D_j = weight · s Σ |a_j| ‖a‖₁ + µ. For
    any p_j > 0 with Σ p_j = 1, aaᵀ ⪯ diag(a_j²/p_j) by Cauchy and Schwarz; p_j = |a_j|/‖a‖₁ has the least trace."""
    total = np.zeros(f.dim)
    for _, rows in _blocks(f.rows):
        sizes = abs(rows.in_scipy())
        total += sizes.T @ np.ravel(sizes.sum(axis=1))
    return np.asarray(f.weight * f.loss.curvature * total + f.mu, np.float64)


def hessian_lipschitz(f: Objective) -> float:
    """weight · s Σ‖a‖³, s the bound of |∂³ℓ/∂m³| that the loss states: ‖∇²f_i(x) − ∇²f_i(y)‖_F is at most so many ‖x − y‖."""
    return float(f.weight * f.loss.third * sum(float(np.sum(_squared_norms(rows) ** 1.5)) for _, rows in _blocks(f.rows)))


def _squared_norms(rows: Rows) -> Vector:
    a = rows.in_scipy()
    return np.ravel(a.multiply(a).sum(axis=1) if scipy.sparse.issparse(a) else np.einsum("ij,ij->i", a, a))


def _gram(rows: Rows, weights: Vector) -> Vector:
    """Aᵀ diag(weights) A (d, d)."""
    if len(rows.matrix) == 1:
        a = rows.dense()
        return (a.T * weights) @ a
    out = np.zeros((rows.dim, rows.dim))
    kernels.add_gram(*rows.matrix, weights, out)
    return out


def _blocks(rows: Rows) -> Iterator[tuple[slice, Rows]]:
    """Blocks of rows, and where they are."""
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        stop = min(start + _ROWS_AT_ONCE, len(rows))
        yield slice(start, stop), rows.cut(start, stop)
