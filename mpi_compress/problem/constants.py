"""Constants of a problem: λmax(AᵀA), the Lipschitz constants of ∇f and of the workers' ∇f_i, and the noise of gradients.

A smoothness is stated by the loss, given by the job, or estimated. λmax(AᵀA) is computed in file order by one process and kept
beside the data, so no number of ranks changes a bit of it.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy  # which loads sparse where it is first used

from mpi_compress.kernels import rows as kernels
from mpi_compress.kernels.vectors import norm
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.datasets.cache import kept
from mpi_compress.problem.datasets.store import DataSet
from mpi_compress.problem.mean_loss import MeanLoss
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.rows import Rows
from mpi_compress.problem.second_order import sampling_noise

_POINTS = 5  # along gradient descent, at which an estimate looks
_TURNS = 20  # of its direction at each of them
_SHORT = 1e-4  # the length of a difference, over 1 + ‖x‖
_SQUARED_UP_TO = 1e150  # the square of a longer gradient, or a sum of such squares, overflows
_BITS = 40  # of an eigenvalue
WIDE, FEW = 2**16, 8  # columns, and how many times as many as rows: from there on AAᵀ is looked at


@dataclass(frozen=True)
class Smoothness:
    """The smoothness of the mean loss, without the regulariser; NaN where it is not known."""

    L: float
    each: list[float] | None = None  # L_i of every worker, where they are asked for
    row: float | None = None  # the largest that one sample gives its worker's minibatch of one, likewise
    variation: float = math.nan  # L_± of the f_i, where it is known and `each` is; it is at most L_rms
    source: str = "computed"  # from the data, by the loss; or "given" by the job, or "estimate", a lower bound

    def plus(self, mu: float) -> "Smoothness":
        """The smoothness after a regulariser of smoothness mu is added to f and to every f_i."""
        each = self.each and [L + mu for L in self.each]
        return replace(self, L=self.L + mu, each=each, row=None if self.row is None else self.row + mu)


def stated(data: DataSet, loss: Any, n: int, each: bool, row: bool) -> Smoothness:
    """What the loss or the model states, for n workers."""
    if not loss.of_margin:
        return _of_model(data, loss, n, each, row)
    scale, weight = loss.curvature / data.n_samples, n / data.n_samples
    if not loss.smooth:
        return Smoothness(math.nan)
    return Smoothness(
        scale * gram_eigenvalues(data)[0],
        [scale * n * eigenvalue for eigenvalue in gram_eigenvalues(data, n)] if each else None,
        max(loss.curvature * (s.squares().max().item() * weight * len(s)) for s in data.shards(range(n), n)) if row else None,
    )


def _of_model(data: DataSet, model: Any, n: int, each: bool, row: bool) -> Smoothness:
    def eigenvalues(shards: int) -> list[float]:
        return gram_eigenvalues(data, shards) if math.isfinite(model.curvature) else [math.nan] * shards

    L = model.smoothness(data.read(0, data.n_samples), eigenvalues(1)[0])
    if math.isnan(L):
        return Smoothness(L)
    weight = n / data.n_samples
    found = Smoothness(L)
    if each:
        shards = [*data.shards(range(n), n)]
        of_all = zip(shards, eigenvalues(n), strict=True)
        parts = [weight * len(rows) * model.smoothness(rows, largest) for rows, largest in of_all]
        found = replace(found, each=parts, variation=model.variation(shards))
    if row:
        squares = ((rows, j, square) for rows in data.shards(range(n), n) for j, square in enumerate(rows.squares().tolist()))
        largest = max(weight * len(rows) * model.smoothness(rows.cut(j, j + 1), square) for rows, j, square in squares)
        found = replace(found, row=largest)
    return found


def estimated(data: DataSet, loss: MeanLoss, n: int, each: bool) -> Smoothness:
    """The largest ‖∇f(x) − ∇f(y)‖ / ‖x − y‖ that trial rounds see, of f and of every f_i: lower bounds, hence estimates."""
    N, start = data.n_samples, loss.start(np.random.default_rng(0))

    def of(rows: Rows, weight: float) -> float:
        return steepest_change(Objective(rows, loss, weight, 0.0), start)

    L = of(data.read(0, N), 1 / N)
    return Smoothness(L, [of(rows, n / N) for rows in data.shards(range(n), n)] if each else None, source="estimate")


def steepest_change(f: Objective, x: Vector) -> float:
    """The largest ‖∇f(x) − ∇f(y)‖ / ‖x − y‖ at points of gradient descent from x (d,), y near x. At each point the direction y − x
    becomes the last difference of gradients, which turns it to where ∇f changes most."""
    x, largest = x.copy(), 0.0
    u = np.random.default_rng(0).standard_normal(x.size)
    for _ in range(_POINTS):
        g = f.value_and_gradient(x)[1].copy()
        for _ in range(_TURNS):
            length = norm(u)
            if not 0 < length < math.inf:
                break
            step = _SHORT * (1 + norm(x)) / length * u
            u = f.value_and_gradient(x + step)[1] - g
            largest = max(largest, norm(u) / norm(step))
        if not 0 < largest < math.inf:
            break
        x -= g / largest
    return largest or math.nan


def largest_eigenvalue(rows: Rows) -> float:
    """λmax(AᵀA) by Lanczos's method to machine precision, without forming AᵀA unless it is 2 × 2; 0 or ∞ if it is 0 or overflows.
    It is computed as λmax(AAᵀ), on the columns that the rows hold, where A has at least 65,536 columns and 8 times as many as
    rows. It is rounded to 40 bits: further ones depend on the BLAS. That of one row is ‖a‖²."""
    if len(rows) == 1:
        return _rounded(rows.squares().item())
    wide = rows.dim >= max(WIDE, FEW * len(rows))
    rows = rows.on_own_columns()[1] if wide else rows
    size = len(rows) if wide else rows.dim
    ones = np.ones(len(rows))

    def product(v: Vector) -> Vector:
        out = np.empty(rows.dim)
        v = np.ascontiguousarray(v, dtype=np.float64)
        if wide:
            kernels.weighted_sum(rows.matrix, v, out)
            return rows.margins(out)
        kernels.gram_product(rows.matrix, ones, v, out)
        return out

    start = np.random.default_rng(0).standard_normal(size)
    length = norm(product(start))
    if not 0 < length < math.inf:
        return length
    if size <= 2:
        found = float(np.linalg.eigvalsh(np.stack([product(e) for e in np.eye(size)]))[-1])
    else:
        operator = scipy.sparse.linalg.LinearOperator((size, size), matvec=product, dtype=np.float64)
        found = float(scipy.sparse.linalg.eigsh(operator, k=1, which="LA", v0=start, tol=1e-13, return_eigenvectors=False)[0])
    return _rounded(found)


def _rounded(eigenvalue: float) -> float:
    """It with 40 bits."""
    fraction, exponent = math.frexp(eigenvalue)
    return math.ldexp(round(math.ldexp(fraction, _BITS)), exponent - _BITS) if math.isfinite(eigenvalue) else eigenvalue


def eigenvalues_file(data: DataSet, n_shards: int) -> Path:
    return data.beside(f"eigenvalues-{_BITS}-bits-{n_shards}.json")


def gram_eigenvalues(data: DataSet, n_shards: int = 1) -> list[float]:
    """λmax(A_iᵀA_i) of every shard i of n, from the file beside the data if it is there."""
    workers = range(n_shards)
    return kept(eigenvalues_file(data, n_shards), lambda: [*map(largest_eigenvalue, data.shards_together(workers, n_shards))])


def gradient_noise(fs: Iterable[Objective], n: int, batch: int | None, x: Vector) -> tuple[float, float]:
    """(1/n) Σ‖∇f_i(x) − ∇f(x)‖², and (1/n) Σ E‖g_i − ∇f_i(x)‖² for minibatches g_i of `batch` rows drawn with replacement.

    Both are infinite if squares overflow; the second is 0 for full gradients, where `batch` is None. `fs` has the n workers' f_i.
    """
    mean, squares, noise = np.zeros(x.size), 0.0, 0.0
    for f in fs:
        g = f.value_and_gradient(x)[1]
        if not norm(g) < _SQUARED_UP_TO:
            return math.inf, math.inf
        mean += g / n
        squares += norm(g) ** 2 / n
        noise += sampling_noise(f, x) / n if batch is not None else 0.0
    return max(squares - norm(mean) ** 2, 0.0), noise / (batch or 1)
