"""What a rank hosts: the rows of its workers, kept from one run to the next, and their objectives.

Before a run, two rounds on two samples compile every kernel and show the kinds of its states.
"""

import pickle
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mpi_compress.algorithms.contract import Method
from mpi_compress.core.errors import placed
from mpi_compress.core.registry import is_ours, with_inner
from mpi_compress.core.streams import Streams
from mpi_compress.engine import asynchronous, rounds
from mpi_compress.engine.evaluation import Evaluator
from mpi_compress.engine.observer import LogSettings, Observer
from mpi_compress.engine.theory import Meter, Theory
from mpi_compress.engine.watching import Watch, values_of
from mpi_compress.exchange import Exchange
from mpi_compress.exchange.ranks import Ranks
from mpi_compress.guard.checks import Subject, asked, refuse
from mpi_compress.guard.verbs import GuardedObjective, first_state, watched
from mpi_compress.job.tables import Ending, Stop
from mpi_compress.kernels.vectors import norm
from mpi_compress.messages.kinds import Vector
from mpi_compress.preparing.problems import Problem
from mpi_compress.preparing.runs import Prepared
from mpi_compress.problem.gradient_room import GradientRoom
from mpi_compress.problem.metrics import ProblemView
from mpi_compress.problem.models import Model
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.rows import Rows
from mpi_compress.saving.checkpoint import States
from mpi_compress.saving.saved_states import UNKNOWN

_ROWS = 2  # of a rehearsed shard
_ROWS_OF_A_USERS = 64  # at most, of one that a user's algorithm rehearses
_COORDINATES = 4_000_000  # of all workers that a user's algorithm rehearses


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


def evaluator_of(p: Prepared, exchange: Exchange, rows: Mapping[int, Rows], watch: Watch | None) -> Evaluator:
    """The evaluator of a run on the workers with these rows; `watch` is the caller's at rank 0, None elsewhere."""
    further, theory = columns_of(p, watch) if watch else None, Theory.of(p.algorithm) if p.spec.log.theory else None
    setting, L = p.algorithm.setting, p.problem.L
    γ = 1.0 / L if L > 0 else 1.0
    m = p.spec.log.evaluate
    samples = None if m is None else _in_one_room({i: _sampled(p, shard, m) for i, shard in rows.items()})
    fs = objectives_of(p, rows)
    meter = Meter.of(p.algorithm, exchange, fs, p.spec.seed) if theory else None
    return Evaluator(exchange, fs, setting.mu_apart, further, theory, setting.penalty_apart, γ, samples, meter)


def objectives_of(p: Prepared, rows: Mapping[int, Rows]) -> dict[int, Objective]:
    """f_i of the workers whose rows these are; without the regulariser where every node applies it on its own."""
    return _in_one_room({i: _objective(p, shard, p.spec.workers.count / p.problem.data.n_samples) for i, shard in rows.items()})


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
    return _objective(p, shard.take(chosen), p.spec.workers.count / p.problem.data.n_samples * len(shard) / size)


def columns_of(p: Prepared, watch: Watch) -> Callable[[Vector], dict[str, float]]:
    """The columns that follow from a point alone: ‖x − x*‖ if x* is known, the test set's if there is one, and metrics."""
    view = view_of(p.problem, p.spec.data.test_rows)
    x_star, held_out = view.x_star, view.held_out

    def columns(x: Vector) -> dict[str, float]:
        distance = {} if x_star is None else {"distance": norm(x - x_star)}
        further = {**values_of(p.spec.metrics, view, x), **watch.values(x)}
        return {**distance, **(held_out.columns(x) if held_out else {}), **further}

    return columns


def view_of(problem: Problem, test_rows: int | None = None) -> ProblemView:
    """A problem as metrics see it."""
    p = problem
    return ProblemView(p.data, p.loss, p.mu, p.penalty, p.x_star, p.f_star, p.test, test_rows)


def try_metrics(p: Prepared) -> None:
    """Evaluate a job's metrics at x0; UserError if one has no number there. At rank 0, before anything runs."""
    with placed(p.spec.where):
        values_of(p.spec.metrics, view_of(p.problem, p.spec.data.test_rows), p.x0)


def rehearse(p: Prepared, sample: Rows) -> str:
    """Run two rounds on samples like the given one; by one rank of a host. Why that was not possible, "" if it was. A user's
    algorithm gets the messages of n workers, on as many samples as a shard has, if that is no great number; it may need more than
    that, so its errors here are left to the run itself. A user's part that remembers something outside of its state, or draws from
    a global generator, is refused."""
    s = to_be_rehearsed(p, sample)
    with placed(p.spec.where):
        (played,) = asked(s, "rehearsal")
    refuse(s, "memory", p.spec.where)
    return "" if played.holds else played.text


def to_be_rehearsed(p: Prepared, sample: Rows) -> Subject:
    """A run's algorithm, one that keeps nothing for the run, with two rounds to run."""
    everyone = replace(p.algorithm.setting, participants=None, robust=None, byzantine=None)  # worker 0 compiles its kernels
    algorithm = p.spec.algorithm.bind(everyone)
    return Subject(algorithm, parts_of(p, algorithm), rounds=partial(_play_two_rounds, p, algorithm, sample))


def parts_of(p: Prepared, algorithm: Method) -> list[Any]:
    """The parts that a run's rounds call."""
    links = (algorithm.up, algorithm.down)
    parts = (algorithm, *(part for link in links for part in (link.compressor, link.codec)), p.problem.loss, p.problem.penalty)
    return [*with_inner((*parts, *p.spec.stop.own))]


def _play_two_rounds(p: Prepared, algorithm: Any, sample: Rows) -> None:
    n, rows, setting = 1, _ROWS, p.algorithm.setting
    if not is_ours(algorithm):
        n = max(1, min(setting.n, _COORDINATES // setting.dim))
        rows = max(rows, min(_ROWS_OF_A_USERS, p.problem.data.n_samples // setting.n))
    functions = {i: _trial_objective(p, sample, rows) for i in range(n)}
    evaluator = Evaluator(Exchange(n), functions, setting.mu_apart)
    observer = Observer(evaluator, p.spec.cost, Stop(rounds=2), LogSettings(n_samples=rows * n))
    loop_of(algorithm)(watched(algorithm), Streams(0), _start(p), observer)


def loop_of(algorithm: Method) -> Callable[..., tuple[Ending, Vector]]:
    """The loop that runs an algorithm: in rounds, or with workers that share memory."""
    return asynchronous.run if algorithm.shares_memory else rounds.run


def first_states(p: Prepared, sample: Rows) -> States:
    """States of the kinds and shapes that the run's algorithm makes, of worker 0 alone, for its checkpoints. Those of a user's
    algorithm that cannot start on two samples are `UNKNOWN`: its source, which is part of the run id, is enough."""
    algorithm = p.spec.algorithm.bind(p.algorithm.setting)
    if algorithm.shares_memory:
        shared = asynchronous.Shared.begun_at(_start(p), p.spec.workers.count)
        return States(0, shared, None, {0: 0}, {0: None})
    up, down = {0: first_state(algorithm.up)}, first_state(algorithm.down)
    try:
        node = algorithm.start(_start(p))
        worker = algorithm.start_worker(node, _trial_objective(p, sample, _ROWS))
        return States(0, node, algorithm.start_master(node), {0: worker}, up, down)
    except Exception:
        if is_ours(algorithm):
            raise
        return States(0, UNKNOWN, UNKNOWN, {0: UNKNOWN}, up, down)


def _start(p: Prepared) -> Vector:
    return np.full(p.problem.dim, 1e-3)


def _objective(p: Prepared, rows: Rows, weight: float) -> Objective:
    """f_i on these rows, without what of the regulariser every node applies on its own; it checks what users' algorithms ask."""
    setting, penalty = p.algorithm.setting, p.problem.penalty
    of_workers = penalty if penalty is not None and setting.penalty_apart is None else None
    mu = 0.0 if setting.mu_apart else p.problem.mu
    return (Objective if is_ours(p.algorithm) else GuardedObjective)(rows, p.problem.loss, weight, mu, of_workers, p.spec.clipping)


def _trial_objective(p: Prepared, sample: Rows, m: int) -> Objective:
    """An objective of m samples: a model's are like the run's; others are sparse or dense, and have the run's type of floats."""
    if isinstance(p.problem.loss, Model):
        return _objective(p, sample.take(np.zeros(m, dtype=np.uint64)), 1.0 / m)
    dim, dtype, sizes = p.problem.data.dim, sample.matrix[-1].dtype, 1.0 + np.arange(m) / m  # alike, their gradients would cancel
    if len(sample.matrix) == 3:
        matrix: tuple[Any, ...] = (np.arange(m + 1, dtype=np.uint64), np.zeros(m, dtype=np.uint32), sizes.astype(dtype))
    else:
        matrix = (np.outer(sizes, np.full(dim, 1.0 / dim)).astype(dtype),)
    return _objective(p, Rows(matrix, np.where(np.arange(m) % 2, -1.0, 1.0), dim), 1.0 / m)
