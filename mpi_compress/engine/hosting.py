"""What a rank hosts: the rows of its workers, kept from one run to the next, and their objectives."""

import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np

from mpi_compress.engine.evaluation import Evaluator
from mpi_compress.engine.meter import Meter
from mpi_compress.engine.metrics import columns_of
from mpi_compress.engine.theory import Theory
from mpi_compress.exchange import Exchange
from mpi_compress.exchange.ranks import Ranks
from mpi_compress.preparing.runs import Prepared
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
    setting, L, m = p.algorithm.setting, p.problem.L, p.spec.log.evaluate
    γ = 1.0 / L if L > 0 else 1.0
    fs = objectives_of(p, rows)
    samples = None if m is None else objectives_of(p, rows, m)
    theory = Theory.of(p.algorithm) if p.spec.log.theory else None
    meter = Meter.of(p.algorithm, exchange, fs, p.spec.seed) if theory else None
    further = columns_of(p) if exchange.is_root else None
    return Evaluator(exchange, fs, setting.mu_apart, further, theory, setting.penalty_apart, γ, samples, meter)


def objectives_of(p: Prepared, rows: Mapping[int, Rows], m: int | None = None) -> dict[int, Objective]:
    """f_i of the workers whose rows these are, or on m of the rows, evenly spread; without the regulariser where every node applies
    it on its own. Those whose rows hold few coordinates lay out their gradients in one vector."""
    found: dict[int, Objective] = {}
    for i, shard in rows.items():
        weight = p.spec.workers.count / p.problem.data.n_samples
        if m is not None:
            size = min(m, len(shard))
            weight = weight * len(shard) / size
            shard = shard.take(np.arange(size, dtype=np.uint64) * len(shard) // size)
        found[i] = objective_of(p, shard, weight)
        found[i].last.room = next(iter(found.values())).last.room
    return found


def objective_of(p: Prepared, rows: Rows, weight: float) -> Objective:
    """f_i on these rows, without what of the regulariser every node applies on its own; it checks what users' algorithms ask."""
    setting, penalty = p.algorithm.setting, p.problem.penalty
    of_workers = penalty if penalty is not None and setting.penalty_apart is None else None
    mu = 0.0 if setting.mu_apart else p.problem.mu
    return Objective(rows, p.problem.loss, weight, mu, of_workers, careful=p.spec.owns(p.spec.algorithm))
