"""How much a run's states hold, counted on the states that its algorithm itself makes at the start of a small stand-in."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mpi_compress.core.registry import is_ours
from mpi_compress.job.runs import RunSpec
from mpi_compress.preparing.needs import algorithm_on
from mpi_compress.preparing.shapes import Shape
from mpi_compress.problem.models import Model
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.rows import Rows
from mpi_compress.saving.frames import size

_DIM = 1000  # d of the stand-in; a state's other fields are small beside a vector


@dataclass(frozen=True)
class Vectors:
    """Vectors (d,) of float64 in the states of a run."""

    node: float
    worker: float  # of each worker
    master: float


UNKNOWN = Vectors(4.0, 3.0, 3.0)
"""What stands for the states of a user's algorithm, and of one that the stand-in does not suit: more than most have."""


def vectors_of(spec: RunSpec) -> Vectors:
    """The vectors in the states of a run's algorithm, `Method.more_memory` left out."""
    if isinstance(spec.loss, Model) or not is_ours(spec.algorithm) or spec.algorithm.shares_memory:
        return UNKNOWN
    n = spec.workers.count
    try:
        algorithm = algorithm_on(spec, Shape(n, _DIM, float(n * _DIM)))
        of_worker, of_master = algorithm.more_memory(_DIM, n)
        node = algorithm.start(np.full(_DIM, 1e-3))
        rows = Rows((np.full((1, _DIM), 1e-2),), np.ones(1), _DIM)
        worker = algorithm.start_worker(node, Objective(rows, spec.loss, 1.0, 0.0))
        return Vectors(_size(node), _size(worker, of_worker), _size(algorithm.start_master(node), of_master))
    except Exception:  # the data decide more than their size does, or the method is not for these
        return UNKNOWN


def _size(state: Any, more: float = 0.0) -> float:
    """The vectors (d,) in a state, without `more` numbers."""
    return float(round(max(0.0, size(state) / 8 - more) / _DIM))
