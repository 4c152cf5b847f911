"""What a rank hosts: the rows of its workers and their objectives, kept from one run to the next."""

import pickle
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mpi_compress.core.registry import is_ours
from mpi_compress.engine.guards import GuardedObjective
from mpi_compress.engine.preparing import Prepared
from mpi_compress.engine.problems import Problem
from mpi_compress.exchange import Exchange
from mpi_compress.exchange.ranks import Ranks
from mpi_compress.kernels.vectors import norm
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.datasets.store import DataSet
from mpi_compress.problem.held_out import HeldOut
from mpi_compress.problem.losses import losses
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.rows import Rows


class HostedRows:
    """The rows of the workers hosted here, of one problem at a time."""

    def __init__(self) -> None:
        self._key: Any = None
        self._rows: dict[int, Rows] = {}

    def of(self, p: Prepared, exchange: Exchange, ranks: Ranks) -> Mapping[int, Rows]:
        """Those of a run; read anew only where the run before had others."""
        data, workers = p.problem.data, p.spec.workers
        key = (data.file, workers.count, workers.exchange, workers.master)
        if key != self._key:
            self._key, self._rows = None, {}  # the old ones go first
            self._rows = _read(data, workers.count, exchange, ranks)
            self._key = key
        return self._rows


def _read(data: DataSet, n: int, exchange: Exchange, ranks: Ranks) -> dict[int, Rows]:
    """Each rank reads its own rows, or gets them from rank 0 where not all ranks see its cache."""
    if len(ranks.that_see(data.file)) == ranks.size:
        return dict(zip(exchange.mine, data.shards_together(exchange.mine, n), strict=True))
    shards = (np.frombuffer(pickle.dumps(rows), dtype=np.uint8) for rows in (data.shards(range(n), n) if ranks.is_root else ()))
    return {i: pickle.loads(frame.data) for i, frame in zip(exchange.mine, exchange.deal(shards), strict=True)}


def objectives_of(p: Prepared, rows: Mapping[int, Rows]) -> dict[int, Objective]:
    """f_i of the workers whose rows these are; without the regulariser where every node applies it on its own."""
    weight, mu = p.spec.workers.count / p.problem.data.n_samples, 0.0 if p.algorithm.setting.mu_apart else p.problem.mu
    return {i: objective_class(p)(shard, losses[p.problem.loss](), weight, mu) for i, shard in rows.items()}


def objective_class(p: Prepared) -> type[Objective]:
    """Objectives that look at what they are asked, for an algorithm that is not of this package."""
    return Objective if is_ours(p.algorithm) else GuardedObjective


def columns_of(problem: Problem) -> Callable[[Vector], dict[str, float]]:
    """The columns that every run has from its point alone: ‖x − x*‖ where x* is known, those of a test set where there is one."""
    x_star, test = problem.x_star, problem.test
    held_out = HeldOut(test.read(0, test.n_samples), losses[problem.loss]()) if test is not None else None

    def columns(x: Vector) -> dict[str, float]:
        distance = {} if x_star is None else {"distance": norm(x - x_star)}
        return {**distance, **(held_out.columns(x) if held_out else {})}

    return columns
