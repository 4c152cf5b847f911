"""What a problem's data decide: λmax(AᵀA), hence smoothness, and the minimiser x* with f*. Computed once, kept beside the data.

All of it is computed over the whole set in file order by one process, so no number of workers or ranks changes a bit of it.
"""

import json
import math
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import scipy.linalg
from scipy.sparse.linalg import LinearOperator, cg, eigsh

from mpi_compress.kernels import rows as kernels
from mpi_compress.kernels.vectors import norm
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem import hinge
from mpi_compress.problem.datasets.cache import replace
from mpi_compress.problem.datasets.store import DataSet
from mpi_compress.problem.objective import Loss, Objective, Rows

GRADIENT_TOLERANCE = 1e-12  # ‖∇f(x*)‖ / ‖∇f(0)‖
DENSE_HESSIAN_UP_TO = 2500
_NEWTON_STEPS = 200
_SQUARED_UP_TO = 1e150  # a longer gradient has no square in floats, or none to add to
_STILL_FALLING = 0.9  # of ‖∇f‖ in a step that no longer lowers f: less is rounding going round


def largest_eigenvalue(rows: Rows) -> float:
    """λmax(AᵀA) by Lanczos to machine precision, AᵀA never formed (but for d ≤ 2, where it is 2×2)."""
    ones = np.ones(len(rows))

    def product(v: Vector) -> Vector:
        out = np.empty(rows.dim)
        kernels.gram_product(rows.matrix, ones, np.ascontiguousarray(v, dtype=np.float64), out)
        return out

    start = np.random.default_rng(0).standard_normal(rows.dim)
    size = norm(product(start))
    if not 0 < size < math.inf:
        return size
    if rows.dim <= 2:
        return float(np.linalg.eigvalsh(np.stack([product(e) for e in np.eye(rows.dim)]))[-1])
    operator = LinearOperator((rows.dim, rows.dim), matvec=product, dtype=np.float64)
    return float(eigsh(operator, k=1, which="LA", v0=start, tol=1e-13, return_eigenvectors=False)[0])


def eigenvalues_file(data: DataSet, n_shards: int = 1) -> Path:
    """Where the shards' λmax are kept."""
    return data.beside(f"eigenvalues-{n_shards}.json")


def gram_eigenvalues(data: DataSet, n_shards: int = 1) -> list[float]:
    """λmax(A_iᵀA_i) of every shard i of n, kept beside the data."""
    note = eigenvalues_file(data, n_shards)
    try:
        kept = [float(v) for v in json.loads(note.read_text())]
        if len(kept) == n_shards:
            return kept
    except (OSError, ValueError, TypeError):
        pass  # not there yet, or damaged
    values = [largest_eigenvalue(rows) for rows in data.shards(range(n_shards), n_shards)]
    replace(note, lambda part: part.write_text(json.dumps(values)))
    return values


def gradient_noise(data: DataSet, loss: Loss, mu: float, n: int, batch: int | None, x: Vector) -> tuple[float, float]:
    """(1/n) Σ‖∇f_i(x) − ∇f(x)‖², and (1/n) Σ E‖g_i − ∇f_i(x)‖² for minibatches g_i of `batch` rows drawn with replacement.

    Both are infinite where squares overflow.
    """
    mean, squares, noise = np.zeros(data.dim), 0.0, 0.0
    for rows in data.shards(range(n), n):
        f = Objective(rows, loss, n / data.n_samples, mu)
        g = f.value_and_gradient(x)[1]
        if not norm(g) < _SQUARED_UP_TO:
            return math.inf, math.inf
        mean += g / n
        squares += norm(g) ** 2 / n
        noise += f.noise(x) / n if batch is not None else 0.0
    return max(squares - norm(mean) ** 2, 0.0), noise / (batch or 1)


@dataclass(frozen=True)
class Optimum:
    """x* and f*."""

    x: Vector  # (d,)
    f: float
    accuracy: float  # a bound on f(x) − f*, and on the rounding of f: a smaller suboptimality is not progress
    reached: float  # ‖∇f(x)‖ / ‖∇f(0)‖; for the hinge the duality gap over f(0) = 1


def optimum_file(data: DataSet, loss_name: str, mu: float) -> Path:
    """Where x* is kept."""
    return data.beside(f"optimum-{loss_name}-{float(mu).hex()}.h5")


def optimum(data: DataSet, loss_name: str, loss: Loss, mu: float) -> Optimum:
    """The minimiser of (1/N) Σ ℓ + (µ/2)‖x‖², kept beside the data by loss and µ."""
    note = optimum_file(data, loss_name, mu)
    try:
        with h5py.File(note, "r", locking=False) as h5:
            kept = Optimum(h5["x"][:], *(float(h5.attrs[a]) for a in ("f", "accuracy", "reached")))
            if kept.x.shape == (data.dim,) and np.isfinite(kept.x).all():
                return kept
    except (OSError, KeyError, RuntimeError, ValueError):
        pass  # not there yet, or damaged
    rows = data.read(0, data.n_samples)
    found = minimize(Objective(rows, loss, 1 / len(rows), mu))

    def fill(part: Path) -> None:
        with h5py.File(part, "w") as h5:
            h5["x"] = found.x
            h5.attrs.update(f=found.f, accuracy=found.accuracy, reached=found.reached)

    replace(note, fill)
    return found


def minimize(f: Objective) -> Optimum:
    """x* and f*: for the hinge by its duality gap, otherwise by Newton's method.

    Newton's method: exact for small d, with conjugate gradients otherwise, until ‖∇f(x)‖ ≤ 1e-12 ‖∇f(0)‖ or rounding stops it.

    A step is halved until f falls enough or, once f has stopped falling for rounding, until ‖∇f‖ does.

    The accuracy is the square of the Newton decrement: twice f(x) − f* where f is quadratic, and all of it on an exponential tail,
    where f* is not attained.
    """
    if not f.loss.smooth:
        x, value, gap = hinge.minimize(f) if f.mu > 0 else (np.zeros(f.dim), 1.0, 1.0)
        return Optimum(x, value, gap + 4 * np.finfo(float).eps * value, gap)
    x = np.zeros(f.dim)
    value, g = _at(f, x)
    first = size = norm(g)
    decrement = 0.0
    for _ in range(_NEWTON_STEPS):
        if size <= GRADIENT_TOLERANCE * first:
            break
        step = _newton_step(f, x, g, size / first)
        decrement = -float(step @ g)
        rounding = 8 * np.finfo(float).eps * abs(value)
        t = 1.0
        while t > 1e-10:
            new_value, new_g = _at(f, x + t * step)
            if new_value <= value - 1e-4 * t * decrement and decrement > rounding:
                break
            if new_value <= value + rounding and norm(new_g) < _STILL_FALLING * size:
                break
            t /= 2
        else:
            break
        x = x + t * step
        value, g = new_value, new_g
        size = norm(g)
    if size > 0:
        decrement = -float(_newton_step(f, x, g, 1e-8) @ g)
    return Optimum(x, value, abs(decrement) + 4 * np.finfo(float).eps * abs(value), size / first if first else 0.0)


def _at(f: Objective, x: Vector) -> tuple[float, Vector]:
    value, g = f.value_and_gradient(x)
    return value, g.copy()


def _newton_step(f: Objective, x: Vector, g: Vector, relative: float) -> Vector:
    """−H⁻¹g; by conjugate gradients to a precision that grows as ∇f falls, so that convergence stays superlinear."""
    curvature = f.curvature(x)
    if f.dim <= DENSE_HESSIAN_UP_TO:
        hessian = f.hessian(curvature)
        jitter = 1e-14 * np.trace(hessian) / f.dim if f.mu == 0 else 0.0
        with suppress(np.linalg.LinAlgError), warnings.catch_warnings():
            warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)  # a poor step is seen by the gradient that it leaves
            return scipy.linalg.solve(hessian + jitter * np.eye(f.dim), -g, assume_a="pos")
    operator = LinearOperator((f.dim, f.dim), matvec=lambda v: f.hessian_product(curvature, v.ravel()), dtype=np.float64)
    step, _ = cg(operator, -g, rtol=min(0.1, max(relative, 1e-9) ** 0.5), maxiter=2000)
    return step if step @ g < 0 else -g
