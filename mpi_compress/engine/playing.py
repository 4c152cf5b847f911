"""One run: begun, or continued from its checkpoint, and played to its end."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import inf, nan
from pathlib import Path
from typing import Any

from mpi_compress.core.blame import text_of
from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import Progress, Turn, bits_text, print_line
from mpi_compress.core.registry import is_ours
from mpi_compress.core.signals import Interrupts, Stopped
from mpi_compress.core.streams import Streams
from mpi_compress.engine.checkpoint import Header, Keeper, Place, header_of, remove_checkpoint, schema_with
from mpi_compress.engine.evaluation import Evaluator
from mpi_compress.engine.hosting import HostedRows, columns_of, first_states, loop_of, objectives_of, rehearse, samples_of
from mpi_compress.engine.observer import Log, Observer, ignore
from mpi_compress.engine.theory import Theory
from mpi_compress.engine.watching import Watch, mark_of
from mpi_compress.exchange import Exchange
from mpi_compress.exchange.ranks import Ranks, at_root
from mpi_compress.guard.guards import watched
from mpi_compress.job.tables import Verdict
from mpi_compress.messages.conventions import conventions_of
from mpi_compress.messages.kinds import Dense, Vector
from mpi_compress.preparing.runs import Prepared, attributes_of
from mpi_compress.problem.datasets.store import outcome
from mpi_compress.problem.rows import Rows
from mpi_compress.results.columns import schema
from mpi_compress.results.files import checkpoint_of, part_of
from mpi_compress.results.writer import BeingWritten, LostRows, Mark, Recorder
from mpi_compress.saving.saved_states import Expected

ReadHeader = Callable[[], Header | None]
"""Reads the checkpoint that goes with a result: its header, or None if the run cannot go on from it."""

DONE = "done"
_LOOK_SECONDS = (0.1, 5.0)  # between two looks at what another process is writing: at first, and at most
AGAIN = "run the same command again to go on"


@dataclass(frozen=True)
class How:
    """How runs are played."""

    ranks: Ranks
    fresh: bool
    quiet: bool
    force: bool
    interrupts: Interrupts
    watch: Watch = field(default_factory=Watch)
    again: str = AGAIN
    shared: bool = False  # with other processes, as the trials of [tune] are: a run that another one plays is waited for


@dataclass(frozen=True)
class Begun:
    """A run that can be played, or the reason why it is not; at rank 0."""

    recorder: Recorder | None = None
    header: Header | None = None  # of the checkpoint to go on from
    instead: str = ""  # DONE, or why waiting for another process ended


def play(p: Prepared, file: Path, how: How, rows: HostedRows, tuned: Mapping[str, Any] | None, turn: Turn) -> Path:
    """Play a run; its result, or the .part of one that failed. Stopped if it was asked to end, and is saved.

    Args:
        rows: keeps the rows of the workers hosted here for the next run.
        tuned: what [tune] found, for the result.
        turn: which of several runs it is, for the progress.
    """
    ranks, workers = how.ranks, p.spec.workers
    patience = 0.0 if p.algorithm.shares_memory else workers.patience_seconds  # without rounds some wait while others work
    exchange = ranks.exchange(workers.count, workers.exchange, workers.master, patience, workers.fold)
    evaluator = _host(p, exchange, how, rows)
    sample = ranks.on_root(lambda: p.problem.data.read(0, 1))
    begun, place = _begin(file, p, evaluator, how, sample, tuned)
    if begun.instead:
        exchange.close()
        if begun.instead == DONE:
            return file
        raise Stopped(f"{p.spec.label}: stopped by {begun.instead} while another process plays it; {how.again}")
    with Progress(p.spec.label, p.spec.stop.rounds, how.quiet or not ranks.is_root, turn) as progress, how.interrupts.in_rounds():
        keeper = _keeper(p, evaluator, begun.recorder, place, how, progress)
        try:
            ranks.first_on_each_host(partial(rehearse, p, sample))
            algorithm = p.algorithm if is_ours(p.algorithm) else watched(p.algorithm)
            verdict, x = loop_of(algorithm)(algorithm, Streams(p.spec.seed), p.x0, keeper.observer, keeper)
            if begun.recorder is not None:
                _end(begun.recorder, verdict, keeper, x, how.watch)
        except BaseException as error:
            return _fail(error, p, file, begun.recorder, how)
    exchange.close()  # not after an error, for then the other ranks are elsewhere
    return _report(p, file, verdict, keeper, how)


def _host(p: Prepared, exchange: Exchange, how: How, rows: HostedRows) -> Evaluator:
    """The evaluator, with the objectives of the workers hosted here."""
    mine = rows.of(p, exchange, how.ranks)
    objectives, samples = objectives_of(p, mine), samples_of(p, mine)
    further = columns_of(p, how.watch) if how.ranks.is_root else None
    theory = Theory.of(p.algorithm) if p.spec.log.theory else None
    setting, L = p.algorithm.setting, p.problem.L
    γ = 1.0 / L if L > 0 else 1.0
    return Evaluator(exchange, objectives, setting.mu_apart, further, theory, setting.penalty_apart, γ, samples)


def _begin(
    file: Path, p: Prepared, evaluator: Evaluator, how: How, sample: Rows, tuned: Mapping[str, Any] | None
) -> tuple[Begun, Place]:
    """Begin the result, or go on with it. Only rank 0 gets its recorder; every rank gets the rest."""
    attributes = {
        **attributes_of(p, evaluator.exchange, how.ranks),
        **(evaluator.theory.attributes(p.algorithm) if evaluator.theory else {}),
        **({} if tuned is None else {"tuned": json.dumps(tuned)}),
        **({"metrics": json.dumps(marks)} if (marks := how.watch.marks(p.spec)) else {}),
    }
    columns = [*p.algorithm.logs, *how.watch.columns_of(p.spec)]
    kept_by_kind = all(is_ours(part) for part in (p.algorithm, p.algorithm.up.compressor, p.algorithm.down.compressor))
    expected = Expected(kept_by_kind, p.problem.dim, type(p.algorithm))
    names = how.ranks.on_root(lambda: schema_with(first_states(p, sample), [schema(), *columns]))

    def saved() -> Header | None:
        last = inf if p.spec.stop.rounds is None else p.spec.stop.rounds
        return header_of(checkpoint_of(file), p.run_id, names, last, first_states(p, sample), p.spec.workers.count, expected)

    begun = at_root(how.ranks, partial(_begin_in_turn, file, p, attributes, saved, how)) or Begun()
    header, instead = how.ranks.on_root(lambda: (begun.header, begun.instead))
    return Begun(begun.recorder, header, instead), Place(checkpoint_of(file), p.run_id, names, header, expected)


def _keeper(p: Prepared, evaluator: Evaluator, recorder: Recorder | None, place: Place, how: How, progress: Progress) -> Keeper:
    """The run's keeper, with its observer."""
    sink = recorder.append if recorder else ignore
    see, every, count = partial(how.watch.see, p.spec.label), p.spec.log.every, conventions_of(p.spec.log.count)
    compresses = p.algorithm.up.compressor.makes is not Dense
    f_star = p.problem.f_star if p.spec.log.evaluate is None else nan  # of a sample no gap follows
    log = Log(p.problem.data.n_samples, f_star, every, count, compresses, sink, see, progress)
    return Keeper(place, p.spec.checkpoint, Observer(evaluator, p.spec.cost, p.spec.stop, log), recorder, how.interrupts.wish)


def _end(recorder: Recorder, verdict: Verdict, keeper: Keeper, x: Vector, watch: Watch) -> None:
    """Complete the result, and remove the checkpoint; or keep both. At rank 0."""
    if verdict is Verdict.STOPPED:
        recorder.abandon("stopped", f"stopped by {keeper.reason}")
        return
    attributes: dict[str, Any] = {"mpi_bytes_received_up": keeper.exchange.bytes_received_up}
    attributes |= {"until": mark_of(watch.until)} if keeper.observer.ended_by_caller else {}
    recorder.finish(verdict.name.lower(), keeper.observer.reason, x, attributes)
    remove_checkpoint(keeper.place.file)


def _fail(error: BaseException, p: Prepared, file: Path, recorder: Recorder | None, how: How) -> Path:
    """Keep the rows so far. The error is raised again, unless the other runs can be played: those of a single process."""
    if recorder is not None:
        recorder.abandon("failed" if isinstance(error, Exception) else "stopped", f"{type(error).__name__}: {error}")
    of_the_run = isinstance(error, Exception) and not isinstance(error, UserError) and error is not how.watch.error
    if of_the_run and how.ranks.size == 1:
        print_line(f"{p.spec.label}: failed, the others go on: {text_of(error)}")
        return part_of(file)
    if isinstance(error, UserError) and not is_ours(p.algorithm):
        raise type(error)(f"{p.spec.where}{error}") from None
    raise error


def _report(p: Prepared, file: Path, verdict: Verdict, keeper: Keeper, how: How) -> Path:
    """Print how the run ended, at rank 0; raises Stopped if it was asked to end."""
    if verdict is Verdict.STOPPED:
        raise Stopped(f"{p.spec.label}: stopped by {keeper.reason}, and saved; {how.again}")
    if how.ranks.is_root and not how.quiet:
        observer = keeper.observer
        why = f" ({observer.reason})" if observer.reason else ""
        print_line(f"{p.spec.label}: {verdict.name.lower()}{why}, {bits_text(observer.counters.wire_bits_up)} up, {file}")
    return file


def _begin_in_turn(file: Path, p: Prepared, attributes: Mapping[str, Any], header_of: ReadHeader, how: How) -> Begun:
    """Begin; if another process plays the run, wait for it where runs are shared, else raise BeingWritten. At rank 0."""
    pause, longest = _LOOK_SECONDS
    waited = False
    while True:
        if how.shared and (waited or not how.fresh) and how.watch.is_served_by(file, p.spec):
            return Begun(instead=DONE)
        try:
            return _opened(file, p, attributes, header_of, how)
        except BeingWritten:
            if not how.shared:
                raise
        if not waited and not how.quiet:
            print_line(f"{p.spec.label}: another process plays this trial; waiting for it")
        waited = True
        if wish := how.interrupts.wish():
            return Begun(instead=wish)
        time.sleep(pause)
        pause = min(1.5 * pause, longest)


def _opened(file: Path, p: Prepared, attributes: Mapping[str, Any], header_of: ReadHeader, how: How) -> Begun:
    """The result's recorder, and the checkpoint to go on from."""
    checkpoint, header = checkpoint_of(file), None
    split = {f"split/{name}": values for name, values in outcome(p.problem.data, p.spec.workers.count).items()}

    def saved() -> Mark | None:
        nonlocal header
        if not how.fresh and checkpoint.exists():
            header = header_of()
            if header is None:
                print_line(f"{p.spec.label}: begins again, for {checkpoint} is damaged, or of another version")
        return header.mark if header else None

    try:
        recorder = Recorder(file, attributes, saved, split)
    except LostRows as lost:
        print_line(f"{p.spec.label}: begins again, for {part_of(file)} does not go with its checkpoint ({lost})")
        recorder, header = Recorder(file, attributes, arrays=split), None
    if header is None:
        remove_checkpoint(checkpoint)
    elif not how.quiet:
        print_line(f"{p.spec.label}: goes on from round {header.k}")
    return Begun(recorder, header)
