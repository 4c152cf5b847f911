"""Two rounds on two samples before a run: every kernel is compiled before a clock starts, and the states are known by kind."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mpi_compress.algorithms.base import Method
from mpi_compress.core.errors import UserError
from mpi_compress.core.registry import is_ours
from mpi_compress.core.streams import Streams
from mpi_compress.engine import asynchronous, rounds
from mpi_compress.engine.evaluation import Evaluator
from mpi_compress.engine.hosting import objective_class
from mpi_compress.engine.observer import Log, Observer
from mpi_compress.engine.preparing import Prepared
from mpi_compress.exchange import Exchange
from mpi_compress.job.stop import Stop, Verdict
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.losses import losses
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.rows import Rows


def rehearse(p: Prepared, sample: Rows) -> None:
    """Play two rounds on two samples like the given one; by one rank of a host.

    An algorithm of the user's own may need more samples, or workers: what is wrong with it the run itself will say.

    Raises:
        UserError: another part of the user's own gives what cannot be sent.
    """
    f, exchange = _objective(p, sample), Exchange(1)
    observer = Observer(Evaluator(exchange, {0: f}), p.spec.cost, Stop(rounds=2), Log(n_samples=2))
    algorithm = p.spec.algorithm.within(p.algorithm.setting)  # one that keeps nothing for the run
    try:
        loop_of(algorithm)(algorithm, {0: f}, exchange, Streams(0), _start(p), observer)
    except UserError as error:
        if is_ours(algorithm):
            raise type(error)(f"{p.spec.where}{error}") from None
    except Exception:
        if is_ours(algorithm):
            raise


def loop_of(algorithm: Method) -> Callable[..., tuple[Verdict, Vector]]:
    """What plays an algorithm: rounds, or workers without rounds."""
    return asynchronous.run if algorithm.shares_memory else rounds.run


def first_states(p: Prepared, sample: Rows) -> Any:
    """States of the kinds that the run's algorithm makes, for the schema of its checkpoints.

    An algorithm of the user's own that cannot start on two samples has none: its source, which is part of the run id, is enough.
    """
    algorithm = p.spec.algorithm.within(p.algorithm.setting)
    if algorithm.shares_memory:
        return asynchronous.Shared
    try:
        node = algorithm.start(_start(p))
        return node, algorithm.start_worker(node, _objective(p, sample)), algorithm.start_master(node)
    except Exception:
        if is_ours(algorithm):
            raise
        return None


def _start(p: Prepared) -> Vector:
    return np.full(p.problem.data.dim, 1e-3)


def _objective(p: Prepared, sample: Rows) -> Objective:
    """That of two samples, sparse or dense and of the type of floats that the run's rows have."""
    dim, dtype = p.problem.data.dim, sample.matrix[-1].dtype
    if len(sample.matrix) == 3:
        matrix: tuple[Any, ...] = (np.arange(3, dtype=np.uint64), np.zeros(2, dtype=np.uint32), np.ones(2, dtype=dtype))
    else:
        matrix = (np.full((2, dim), 1.0 / dim, dtype=dtype),)
    return objective_class(p)(Rows(matrix, np.array([1.0, -1.0]), dim), losses[p.problem.loss](), 0.5, p.problem.mu)
