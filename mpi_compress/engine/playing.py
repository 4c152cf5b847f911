"""One run, from its first row or its checkpoint to its file."""

import json
import math
import pickle
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mpi_compress.algorithms import Algorithm
from mpi_compress.algorithms.async_sgd import AsyncSGD
from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import Progress, bits_text, print_line
from mpi_compress.core.registry import is_ours
from mpi_compress.core.signals import Interrupts, Stopped
from mpi_compress.core.streams import Streams
from mpi_compress.engine import asynchronous
from mpi_compress.engine import rounds as engine
from mpi_compress.engine.checkpoint import Header, Keeper, header_of, path_of, remove_checkpoint
from mpi_compress.engine.guards import GuardedObjective, watched
from mpi_compress.engine.observer import Observer
from mpi_compress.engine.preparing import Prepared
from mpi_compress.engine.problems import Problem
from mpi_compress.engine.provenance import attributes_of
from mpi_compress.engine.theory import Theory
from mpi_compress.exchange import Exchange, Local
from mpi_compress.exchange.ranks import Ranks, at_root
from mpi_compress.job.stop import Stop, Verdict
from mpi_compress.kernels.vectors import norm
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.datasets.store import DataSet
from mpi_compress.problem.held_out import HeldOut
from mpi_compress.problem.losses import losses
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.rows import Rows
from mpi_compress.results.files import part_of
from mpi_compress.results.writer import BeingWritten, LostRows, Mark, Recorder


@dataclass(frozen=True)
class How:
    """How runs are played."""

    ranks: Ranks
    fresh: bool
    quiet: bool
    force: bool
    interrupts: Interrupts
    shared: bool = False  # with other processes, as the trials of [tune] are: what another is at is waited for


_DONE = "done"
_LOOK_SECONDS = (0.1, 5.0)  # between two looks at what another process is at: at first, and at most


def play(
    p: Prepared,
    file: Path,
    how: How,
    rows: dict[Any, dict[int, Rows]],
    tuned: Mapping[str, Any] | None,
) -> Path:
    """One run, from its first row or its checkpoint to its file."""
    spec, problem, ranks, quiet = p.spec, p.problem, how.ranks, how.quiet
    n = spec.workers.count
    exchange = ranks.exchange(n, spec.workers.exchange, spec.workers.master)
    key = (problem.data.file, n, spec.workers.exchange, spec.workers.master)
    if key not in rows:
        rows.clear()  # one problem in memory at a time
        rows[key] = _rows(problem.data, n, exchange, ranks)
    weight, mu = n / problem.data.n_samples, 0.0 if p.algorithm.setting.mu_apart else problem.mu
    objectives = {i: _objective_of(p)(r, losses[problem.loss](), weight, mu) for i, r in rows[key].items()}
    sample = ranks.on_root(lambda: problem.data.read(0, 1))
    also = _columns_of(problem) if ranks.is_root else None
    theory = Theory.of(p.algorithm) if spec.log.theory else None
    attributes = {**attributes_of(p, exchange, ranks), **(theory.attributes(p.algorithm) if theory else {})}
    if tuned is not None:
        attributes["tuned"] = json.dumps(tuned)
    begun = at_root(ranks, partial(_begin_in_turn, file, p, attributes, how))
    recorder, saved, instead = begun or (None, None, "")
    instead = ranks.on_root(lambda: instead)
    if instead:
        exchange.close()
        if instead == _DONE:
            return file
        raise Stopped(f"{spec.label}: stopped by {instead} while another process plays it; run the same command again to go on")
    with Progress(spec.label, spec.stop.rounds, quiet or not ranks.is_root) as progress, how.interrupts.in_rounds():
        observer = Observer(
            exchange, objectives, problem.data.n_samples, p.algorithm.setting.mu_apart, problem.f_star, spec.cost,
            spec.stop, spec.log.every, recorder.append if recorder else _nothing, progress, also, theory,
        )  # fmt: skip
        keeper = Keeper(
            path_of(file), p.run_id, ranks.on_root(lambda: saved), spec.checkpoint, exchange, objectives, observer, recorder,
            how.interrupts.wish,
        )  # fmt: skip
        try:
            ranks.first_on_each_host(lambda: _rehearse(p, sample))
            algorithm = p.algorithm if is_ours(p.algorithm) else watched(p.algorithm)
            verdict, x = _engine(algorithm)(algorithm, objectives, exchange, Streams(spec.seed), p.x0, observer, keeper)
            if recorder is not None:
                _end(recorder, verdict, keeper, x)
        except BaseException as error:
            if recorder is not None:
                recorder.abandon("failed" if isinstance(error, Exception) else "stopped", f"{type(error).__name__}: {error}")
            if isinstance(error, Exception) and not isinstance(error, UserError) and ranks.size == 1:
                print_line(f"{spec.label}: failed, the others go on:\n{traceback.format_exc()}")
                return part_of(file)
            if isinstance(error, UserError) and not is_ours(p.algorithm):
                raise type(error)(f"{spec.where}{error}") from None
            raise
    exchange.close()  # not after an error, for then the other ranks are elsewhere
    if verdict is Verdict.STOPPED:
        raise Stopped(f"{spec.label}: stopped by {keeper.reason}, and saved; run the same command again to go on")
    if ranks.is_root and not quiet:
        why = f" ({observer.reason})" if observer.reason else ""
        print_line(f"{spec.label}: {verdict.name.lower()}{why}, {bits_text(sum(observer.wire_up))} up, {file}")
    return file


def _begin_in_turn(file: Path, p: Prepared, attributes: Mapping[str, Any], how: How) -> tuple[Recorder | None, Header | None, str]:
    """What `_begin` gives, and ""; or, of a run that others may be at, that it is done, or why to stop waiting. At rank 0."""
    pause, most = _LOOK_SECONDS
    waited = False
    while True:
        if how.shared and file.exists() and (waited or not how.fresh):
            return None, None, _DONE
        try:
            return *_begin(file, p, attributes, how.fresh, how.quiet), ""
        except BeingWritten:
            if not how.shared:
                raise
        if not waited and not how.quiet:
            print_line(f"{p.spec.label}: another process plays this trial; waiting for it")
        waited = True
        if how.interrupts.wish():
            return None, None, how.interrupts.wish()
        time.sleep(pause)
        pause = min(1.5 * pause, most)


def _begin(file: Path, p: Prepared, attributes: Mapping[str, Any], fresh: bool, quiet: bool) -> tuple[Recorder, Header | None]:
    """The result's recorder, and the checkpoint to go on from; at rank 0."""
    checkpoint = path_of(file)
    saved: Header | None = None

    def mark() -> Mark | None:
        nonlocal saved
        if not fresh and checkpoint.exists():
            saved = header_of(checkpoint, p.run_id)
            if saved is None:
                print_line(f"{p.spec.label}: begins again, for {checkpoint} is damaged, or of another version")
        return saved.mark if saved else None

    try:
        recorder = Recorder(file, attributes, mark)
    except LostRows as lost:
        print_line(f"{p.spec.label}: begins again, for {part_of(file)} does not go with its checkpoint ({lost.__cause__})")
        recorder, saved = Recorder(file, attributes), None
    if saved is None:
        remove_checkpoint(checkpoint)
    elif not quiet:
        print_line(f"{p.spec.label}: goes on from round {saved.k}")
    return recorder, saved


def _end(recorder: Recorder, verdict: Verdict, keeper: Keeper, x: Vector) -> None:
    """Complete the result, and remove the checkpoint; or keep both. At rank 0."""
    if verdict is Verdict.STOPPED:
        recorder.abandon("stopped", f"stopped by {keeper.reason}")
        return
    attributes = {"mpi_bytes_received_up": keeper.exchange.bytes_received_up}
    recorder.finish(verdict.name.lower(), keeper.observer.reason, x, attributes)
    remove_checkpoint(keeper.file)


def _rows(data: DataSet, n: int, exchange: Exchange, ranks: Ranks) -> dict[int, Rows]:
    """The rows of the workers hosted here: each rank reads its own, or gets them from rank 0 where not all see its cache."""
    if len(ranks.that_see(data.file)) == ranks.size:
        return dict(zip(exchange.mine, data.shards_together(exchange.mine, n), strict=True))
    shards = (np.frombuffer(pickle.dumps(rows), dtype=np.uint8) for rows in (data.shards(range(n), n) if ranks.is_root else ()))
    return {i: pickle.loads(frame.data) for i, frame in zip(exchange.mine, exchange.deal(shards), strict=True)}


def _columns_of(problem: Problem) -> Callable[[Vector], dict[str, float]]:
    """The columns that every run has from its point alone: ‖x − x*‖ where x* is known, those of a test set where there is one."""
    x_star, test = problem.x_star, problem.test
    held_out = HeldOut(test.read(0, test.n_samples), losses[problem.loss]()) if test is not None else None

    def columns(x: Vector) -> dict[str, float]:
        distance = {} if x_star is None else {"distance": norm(x - x_star)}
        return {**distance, **(held_out.columns(x) if held_out else {})}

    return columns


def _engine(algorithm: Algorithm) -> Any:
    """What plays it: rounds, or workers without rounds."""
    return asynchronous.run if isinstance(algorithm, AsyncSGD) else engine.run


def _objective_of(p: Prepared) -> type[Objective]:
    return Objective if is_ours(p.algorithm) else GuardedObjective


def _rehearse(p: Prepared, shard: Rows) -> None:
    """Two rounds on two samples, so that every kernel is compiled, by one rank of a host, before a clock starts.

    An algorithm of the user's own may need more samples, or workers: what is wrong with it the run itself will tell.

    Raises:
        UserError: another part of the user's own gives what cannot be sent.
    """
    dim, n = p.problem.data.dim, 1
    dtype = shard.matrix[-1].dtype
    if len(shard.matrix) == 3:
        matrix: tuple[Any, ...] = (np.arange(3, dtype=np.uint64), np.zeros(2, dtype=np.uint32), np.ones(2, dtype=dtype))
    else:
        matrix = (np.full((2, dim), 1.0 / dim, dtype=dtype),)
    f = _objective_of(p)(Rows(matrix, np.array([1.0, -1.0]), dim), losses[p.problem.loss](), 0.5, p.problem.mu)
    observer = Observer(Local(n), {0: f}, 2, 0.0, math.nan, p.spec.cost, Stop(rounds=2), 1, _nothing, _nothing)
    algorithm = p.spec.algorithm.within(p.algorithm.setting)  # one that keeps nothing for the run
    try:
        _engine(algorithm)(algorithm, {0: f}, Local(n), Streams(0), np.full(dim, 1e-3), observer)
    except UserError as error:
        if is_ours(algorithm):
            raise type(error)(f"{p.spec.where}{error}") from None
    except Exception:
        if is_ours(algorithm):
            raise


def _nothing(*_: Any) -> None:
    pass
