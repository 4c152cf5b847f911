"""What a rank hosts: the rows of its workers, kept from one run to the next, and their functions."""

import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mpi_compress.engine.evaluation import Evaluator
from mpi_compress.engine.meter import Meter
from mpi_compress.engine.metrics import columns_of
from mpi_compress.engine.theory import Theory
from mpi_compress.exchange import Exchange
from mpi_compress.exchange.ranks import Ranks
from mpi_compress.preparing.runs import Prepared
from mpi_compress.problem.data_terms import data_term
from mpi_compress.problem.objective import Shards
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
            kept[key] = {i: pickle.loads(frame.data) for i, frame in zip(mine, exchange.scatter_states(frames), strict=True)}
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


def objectives_of(p: Prepared, rows: Mapping[int, Rows], m: int | None = None) -> Shards:
    """f_i of the workers whose rows these are, or on m of the rows, evenly spread."""
    weights, held = [p.problem.data.weight(p.spec.workers.count)] * len(rows), [*rows.values()]
    if m is not None:
        sizes = [min(m, len(shard)) for shard in held]
        weights = [weight * len(shard) / size for weight, shard, size in zip(weights, held, sizes, strict=True)]
        held = [shard.take(np.arange(n, dtype=np.uint64) * len(shard) // n) for shard, n in zip(held, sizes, strict=True)]
    return shards_of(p, dict(zip(rows, held, strict=True)), weights)


def shards_of(p: Prepared, rows: Mapping[int, Rows], weights: Sequence[float]) -> Shards:
    """f_i on these rows, without what of the regulariser every node applies on its own; they check what users' algorithms ask."""
    setting, problem = p.algorithm.setting, p.problem
    penalty = problem.penalty if setting.penalty_apart is None else None
    mu = 0.0 if setting.mu_apart else problem.mu
    terms = [data_term(shard, problem.loss, weight, mu) for shard, weight in zip(rows.values(), weights, strict=True)]
    return Shards(terms, penalty, p.spec.owns(p.spec.algorithm), [*rows], p.spec.objective.noise)
