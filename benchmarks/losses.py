"""Loss and gradient of shards: the fused pass of a kernel, a loss in NumPy, and two products by SciPy with the log-loss in NumPy.

f(x) = (1/N) Σ log(1 + exp(−y_j a_j·x)) at one x, no ridge, one thread. For float32 data SciPy is given x as float32, too, and stays in
float32; ours adds in float64. A time is the median of turns in which all ways are called one after another.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from mpi_compress.core.errors import UserError
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.datasets import generators
from mpi_compress.problem.datasets.store import open_data
from mpi_compress.problem.datasets.table import DataTable
from mpi_compress.problem.losses import Loss, losses
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.partitions import Split
from mpi_compress.problem.rows import Rows

from ._clock import seconds, side_by_side

GENERATED = (("rcv1-like", 200_000, 4), ("url-like", 60_000, 1), ("gisette-like", 2000, 1))  # rows and workers
REAL = ("url_sub2000", "a9a", "mushrooms")
HEAD = ("data", "rows × d", "nonzeros", "floats", "fused, ms", "ns a nonzero", "SciPy, ms", "SciPy / fused", "NumPy / fused")


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


def shards() -> Iterator[tuple[str, Rows, int]]:
    """The name, the rows and the number of workers of every set; a real one only if it is at hand."""
    for name, samples, workers in GENERATED:
        yield name, rows_of(name, samples=samples), workers
    for name in REAL:
        try:
            data = open_data(DataTable(name=name), Path(), Split(), "sign")
        except UserError as error:
            print(f"left out: {error}")
            continue
        yield name, data.read(0, data.n_samples), 1


def by_scipy(rows: Rows) -> Callable[[Vector], Vector]:
    """The gradient by two products, in the floats of the rows."""
    kind = rows.matrix[-1].dtype
    if len(rows.matrix) == 1:
        a = rows.matrix[0]
    else:
        indptr, indices, values = rows.matrix
        a = sp.csr_matrix((values, indices.astype(np.int32), indptr.astype(np.int64)), shape=(len(rows), rows.dim))
    labels = rows.labels.astype(kind)

    def gradient(x: Vector) -> Vector:
        values, slopes = InNumPy().value_and_slope(labels, a @ x)
        values.sum()
        return a.T @ slopes / len(rows)

    return gradient


def compared(name: str, rows: Rows, workers: int, lasting: float) -> Sequence[str]:
    """A row of the table: all workers' gradients, one worker after another."""
    cuts = np.linspace(0, len(rows), workers + 1).astype(int)
    parts = [rows.cut(a, b) for a, b in itertools.pairwise(cuts)]
    x = np.random.default_rng(0).standard_normal(rows.dim) / 100
    given = x.astype(rows.matrix[-1].dtype)

    def all_of(gradients: Sequence[Callable[[Vector], Any]], x: Vector) -> None:
        for gradient in gradients:
            gradient(x)

    fused, own = ([Objective(p, loss, 1 / len(p), 0.0).gradient for p in parts] for loss in (losses["logistic"](), InNumPy()))
    ways = {"fused": partial(all_of, fused, x), "own": partial(all_of, own, x), "SciPy": partial(all_of, list(map(by_scipy, parts)), given)}
    took = side_by_side(ways, lasting)
    nonzeros = rows.matrix[-1].size
    of = f" on {workers} workers" if workers > 1 else ""
    shape = f"{len(rows):,} × {rows.dim:,}"
    return (
        name + of, shape, f"{nonzeros:,}", str(given.dtype), f"{took['fused'] / 1e3:.2f}", f"{1e3 * took['fused'] / nonzeros:.2f}",
        f"{took['SciPy'] / 1e3:.2f}", f"{took['SciPy'] / took['fused']:.2f}", f"{took['own'] / took['fused']:.2f}",
    )  # fmt: skip


def bandwidth() -> float:
    """Bytes a second that one core reads and writes: copies of 128 MiB."""
    a = np.ones(2**24)
    b = np.empty_like(a)
    return 2 * a.nbytes / seconds(lambda: np.copyto(b, a), at_least=0)


def main(lasting: float = 6.0) -> None:
    print(f"A copy of 128 MiB reads and writes {bandwidth() / 1e9:.1f} GB/s.\n")
    print("| " + " | ".join(HEAD) + " |\n|" + " --- |" + " ---: |" * (len(HEAD) - 1))
    for name, rows, workers in shards():
        for kind in (np.float64, np.float32):
            some = Rows((*rows.matrix[:-1], rows.matrix[-1].astype(kind)), rows.labels, rows.dim)
            print("| " + " | ".join(compared(name, some, workers, lasting)) + " |", flush=True)
