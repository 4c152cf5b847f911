"""What a rank hosts: the rows of its workers, kept from one run to the next, and their objectives."""

import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np

from mpi_compress.core.registry import is_ours
from mpi_compress.engine.evaluation import Evaluator
from mpi_compress.engine.metrics import columns_of
from mpi_compress.engine.theory import Meter, Theory
from mpi_compress.exchange import Exchange
from mpi_compress.exchange.ranks import Ranks
from mpi_compress.guard.verbs import GuardedObjective
from mpi_compress.preparing.runs import Prepared
from mpi_compress.problem.gradient_room import GradientRoom
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.rows import Rows


def hosted_rows(p: Prepared, exchange: Exchange, ranks: Ranks, kept: dict[Any, dict[int, Rows]]) -> Mapping[int, Rows]:
    """The rows of a run's workers here. Each rank reads its own, or gets them from rank 0 where not all ranks see its cache; `kept`
    are those of the run before, by what decides them, and they are read again only if this run has others."""
    data, n, mine = p.problem.data, p.spec.workers.count, exchange.mine
    key = (data.file, n, exchange.hosts)
    if key not in kept:
        kept.clear()  # the old ones go first
        if len(ranks.that_see(data.file)) == ranks.size:
            kept[key] = dict(zip(mine, data.shards_together(mine, n), strict=True))
        else:
            shards = data.shards(range(n), n) if ranks.is_root else ()
            frames = (np.frombuffer(pickle.dumps(rows), dtype=np.uint8) for rows in shards)
            kept[key] = {i: pickle.loads(frame.data) for i, frame in zip(mine, exchange.deal(frames), strict=True)}
    return kept[key]


def evaluator_of(p: Prepared, exchange: Exchange, rows: Mapping[int, Rows]) -> Evaluator:
    """The evaluator of a run on the workers with these rows."""
    further, theory = columns_of(p) if exchange.is_root else None, Theory.of(p.algorithm) if p.spec.log.theory else None
    setting, L = p.algorithm.setting, p.problem.L
    γ = 1.0 / L if L > 0 else 1.0
    m = p.spec.log.evaluate
    samples = None if m is None else _in_one_room({i: _sampled(p, shard, m) for i, shard in rows.items()})
    fs = objectives_of(p, rows)
    meter = Meter.of(p.algorithm, exchange, fs, p.spec.seed) if theory else None
    return Evaluator(exchange, fs, setting.mu_apart, further, theory, setting.penalty_apart, γ, samples, meter)


def objectives_of(p: Prepared, rows: Mapping[int, Rows]) -> dict[int, Objective]:
    """f_i of the workers whose rows these are; without the regulariser where every node applies it on its own."""
    return _in_one_room({i: objective_of(p, shard, p.spec.workers.count / p.problem.data.n_samples) for i, shard in rows.items()})


def _in_one_room(functions: dict[int, Objective]) -> dict[int, Objective]:
    """The same functions; those whose rows hold few coordinates lay out their gradients in one vector."""
    if functions:
        room = GradientRoom(next(iter(functions.values())).dim)
        for f in functions.values():
            f.last.room = room
    return functions


def _sampled(p: Prepared, shard: Rows, m: int) -> Objective:
    """f_i on m rows of a worker's shard, evenly spread over it."""
    size = min(m, len(shard))
    chosen = np.arange(size, dtype=np.uint64) * len(shard) // size
    return objective_of(p, shard.take(chosen), p.spec.workers.count / p.problem.data.n_samples * len(shard) / size)


def objective_of(p: Prepared, rows: Rows, weight: float) -> Objective:
    """f_i on these rows, without what of the regulariser every node applies on its own; it checks what users' algorithms ask."""
    setting, penalty = p.algorithm.setting, p.problem.penalty
    of_workers = penalty if penalty is not None and setting.penalty_apart is None else None
    mu = 0.0 if setting.mu_apart else p.problem.mu
    return (Objective if is_ours(p.algorithm) else GuardedObjective)(rows, p.problem.loss, weight, mu, of_workers, p.spec.clipping)
