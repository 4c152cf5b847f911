"""Before a run, two rounds on two samples compile every kernel and show the kinds of its states."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mpi_compress.algorithms import Algorithm
from mpi_compress.algorithms.contract import Method
from mpi_compress.algorithms.memories import one
from mpi_compress.core.errors import UserError, placed
from mpi_compress.core.streams import Streams
from mpi_compress.engine import asynchronous, rounds
from mpi_compress.engine.evaluation import Evaluator
from mpi_compress.engine.hosting import shards_of
from mpi_compress.engine.observer import Observer
from mpi_compress.engine.ringleader import tables_at
from mpi_compress.exchange import Exchange
from mpi_compress.job.tables import Ending, Stop
from mpi_compress.messages.kinds import Vector
from mpi_compress.preparing.runs import Prepared
from mpi_compress.problem.objective import Shards
from mpi_compress.problem.rows import Rows
from mpi_compress.saving.checkpoint import States
from mpi_compress.saving.frames import dump
from mpi_compress.saving.saved_states import UNKNOWN

_ROWS = 2  # of a shard


def warm_up(p: Prepared, sample: Rows) -> None:
    """Run two rounds on samples like the given one, for their kernels; by one rank of a host. A user's algorithm may need more than
    that, so its errors here are left to the run itself."""
    try:
        with placed(p.spec.where), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            run_two_rounds(p, bound_alone(p), sample)
    except Exception:
        if not p.spec.owns(p.spec.algorithm):
            raise


def bound_alone(p: Prepared) -> Method:
    """A run's algorithm, one that keeps nothing for the run."""
    return p.spec.algorithm.bind(replace(p.algorithm.setting, participants=None, rule=None))  # worker 0 compiles its kernels


def run_two_rounds(p: Prepared, algorithm: Any, sample: Rows, n: int = 1, rows: int = _ROWS) -> None:
    """Two rounds of n workers, each on so many samples like the given one."""
    evaluator = Evaluator(Exchange(n), _trial_shards(p, sample, rows, n), p.algorithm.setting.mu_apart)
    observer = Observer(evaluator, p.spec.cost, Stop(rounds=2), rows * n)
    loop_of(algorithm)(algorithm, Streams(0), _start(p), observer)


def loop_of(algorithm: Method) -> Callable[..., tuple[Ending, Vector]]:
    """The loop that runs an algorithm: in rounds, or with workers that share memory."""
    return rounds.run if isinstance(algorithm, Algorithm) else asynchronous.run


def first_states(p: Prepared, sample: Rows) -> States:
    """States of the kinds and shapes that the run's algorithm makes, of worker 0 alone, for its checkpoints. Those of a user's
    algorithm that cannot start on two samples are `UNKNOWN`: its source, which is part of the run id, is enough."""
    algorithm = p.spec.algorithm.bind(p.algorithm.setting)
    if not isinstance(algorithm, Algorithm):
        shared = asynchronous.Shared.begun_at(_start(p), p.spec.workers.count)
        return States(0, shared, None, [0], [None])
    up, down = [algorithm.up.start()], algorithm.down.start()
    try:
        node = algorithm.start(_start(p))
        workers = [one(algorithm.start_workers(node, _trial_shards(p, sample, _ROWS)), 0)]
        queued, tables = rounds.queued_at(algorithm, node), tables_at(algorithm)
        first = States(0, node, algorithm.start_master(node), workers, up, down, queued, tables)
    except Exception:
        if not p.spec.owns(p.spec.algorithm):
            raise
        return States(0, UNKNOWN, UNKNOWN, [UNKNOWN], up, down, UNKNOWN)
    try:
        dump([first.node, first.master, first.workers, up, down])
    except TypeError as error:
        what = f"{p.spec.where}a state of {algorithm.name} or of its compressors cannot be saved in a checkpoint"
        raise UserError(f"{what}: {error}; dataclasses of arrays, numbers, lists and dicts can") from None
    return first


def _start(p: Prepared) -> Vector:
    return np.full(p.problem.dim, 1e-3)


def _trial_shards(p: Prepared, sample: Rows, m: int, n: int = 1) -> Shards:
    """Functions of n workers on m samples. A model's are like the run's; others are sparse or dense as they are, of its floats."""
    if p.problem.loss.of_margin:
        dim, dtype = p.problem.data.dim, sample.matrix[-1].dtype
        sizes = 1.0 + np.arange(m) / m  # alike, their gradients would cancel
        if len(sample.matrix) == 3:
            matrix: tuple[Any, ...] = (np.arange(m + 1, dtype=np.uint64), np.zeros(m, dtype=np.uint32), sizes.astype(dtype))
        else:
            matrix = (np.outer(sizes, np.full(dim, 1.0 / dim)).astype(dtype),)
        rows = Rows(matrix, np.where(np.arange(m) % 2, -1.0, 1.0), dim)
    else:
        rows = sample.take(np.zeros(m, dtype=np.uint64))
    return shards_of(p, dict.fromkeys(range(n), rows), [1.0 / m] * n)
