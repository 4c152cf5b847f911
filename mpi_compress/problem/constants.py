"""Constants of a problem: λmax(AᵀA), hence smoothness, and the noise of its gradients.

λmax(AᵀA) is computed in file order by one process and kept beside the data, so no number of ranks changes a bit of it.
"""

import json
import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import scipy  # which loads sparse where it is first used

from mpi_compress.kernels import rows as kernels
from mpi_compress.kernels.vectors import norm
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.datasets.cache import replace
from mpi_compress.problem.datasets.store import DataSet
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.rows import Rows
from mpi_compress.problem.second_order import sampling_noise

_SQUARED_UP_TO = 1e150  # the square of a longer gradient, or a sum of such squares, overflows


def largest_eigenvalue(rows: Rows) -> float:
    """λmax(AᵀA) by Lanczos's method to machine precision, without forming AᵀA unless d ≤ 2; 0 or ∞ if AᵀA is 0 or overflows."""
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
    operator = scipy.sparse.linalg.LinearOperator((rows.dim, rows.dim), matvec=product, dtype=np.float64)
    return float(scipy.sparse.linalg.eigsh(operator, k=1, which="LA", v0=start, tol=1e-13, return_eigenvectors=False)[0])


def eigenvalues_file(data: DataSet, n_shards: int = 1) -> Path:
    """The file that keeps λmax of every shard."""
    return data.beside(f"eigenvalues-{n_shards}.json")


def gram_eigenvalues(data: DataSet, n_shards: int = 1) -> list[float]:
    """λmax(A_iᵀA_i) of every shard i of n, from the file beside the data if it is there."""
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


def gradient_noise(fs: Iterable[Objective], n: int, batch: int | None, x: Vector) -> tuple[float, float]:
    """(1/n) Σ‖∇f_i(x) − ∇f(x)‖², and (1/n) Σ E‖g_i − ∇f_i(x)‖² for minibatches g_i of `batch` rows drawn with replacement.

    Both are infinite if squares overflow.

    Args:
        fs: f_i of every worker, one after the other.
        n: how many they are.
        batch: None for full gradients, whose second number is 0.
        x: (d,).
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
