"""A loss in NumPy against the fused pass of its kernel, and against two products by SciPy with the log-loss in NumPy.

Rows are like rcv1's (sparse), and dense.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp

from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.datasets import generators
from mpi_compress.problem.losses import Loss, losses
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.rows import Rows

from ._clock import side_by_side


@dataclass(frozen=True)
class InNumPy(Loss):
    """The logistic loss as a user would write it."""

    name = "in-numpy"
    curvature = 0.25

    def value_and_slope(self, y: Vector, m: Vector) -> tuple[Vector, Vector]:
        e = np.exp(-np.abs(y * m))
        return np.log1p(e) + np.maximum(-y * m, 0), -y * np.where(y * m >= 0, e, 1.0) / (1 + e)


def rows_of(name: str, **parameters: int) -> Rows:
    samples, labels = zip(*generators[name](**parameters).chunks(), strict=True)
    if not sp.issparse(samples[0]):
        return Rows((np.concatenate(samples),), np.concatenate(labels), samples[0].shape[1])
    a = sp.vstack(samples).tocsr()
    matrix = (a.indptr.astype(np.uint64), a.indices.astype(np.uint32), a.data.astype(np.float64))
    return Rows(matrix, np.concatenate(labels), a.shape[1])


def by_scipy(rows: Rows) -> Callable[[Vector], Vector]:
    """The gradient by two products."""
    if len(rows.matrix) == 1:
        a = rows.matrix[0]
    else:
        indptr, indices, values = rows.matrix
        a = sp.csr_matrix((values, indices.astype(np.int32), indptr.astype(np.int64)), shape=(len(rows), rows.dim))

    def gradient(x: Vector) -> Vector:
        values, slopes = InNumPy().value_and_slope(rows.labels, a @ x)
        values.sum()
        return a.T @ slopes / len(rows)

    return gradient


def main() -> None:
    for name, parameters in (("rcv1-like", {"samples": 40_000}), ("gisette-like", {"samples": 2000})):
        rows = rows_of(name, **parameters)
        x = np.random.default_rng(0).standard_normal(rows.dim) / 100
        fused, own = (Objective(rows, loss, 1 / len(rows), 1e-4) for loss in (losses["logistic"](), InNumPy()))
        ways = {"fused": fused.gradient, "own, in NumPy": own.gradient, "SciPy": by_scipy(rows)}
        found = side_by_side({way: partial(gradient, x) for way, gradient in ways.items()}, lasting=3.0)
        shown = ", ".join(f"{way} {each / 1000:.1f} ms ({each / found['fused']:.2f})" for way, each in found.items())
        print(f"{name}, {len(rows)} × {rows.dim}: {shown}")
