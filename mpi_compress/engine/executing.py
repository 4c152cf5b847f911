"""One run: begun, or continued from its checkpoint, and run to its end."""

import itertools
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np

from mpi_compress.core.blame import place_in_part, text_of
from mpi_compress.core.clock import Laps
from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import Progress, Turn, bits_text, ignore, print_line
from mpi_compress.core.registry import is_ours
from mpi_compress.core.signals import Interrupts, Stopped
from mpi_compress.core.streams import Streams
from mpi_compress.engine.counting import Counters
from mpi_compress.engine.earlier_runs import serves
from mpi_compress.engine.hosting import evaluator_of, first_states, hosted_rows, loop_of, parts_of, rehearse
from mpi_compress.engine.keeper import Keeper
from mpi_compress.engine.observer import LogSettings, Observer
from mpi_compress.engine.theory import attributes as of_theorem
from mpi_compress.engine.watching import Watch, mark_of
from mpi_compress.exchange.host import own_cores
from mpi_compress.exchange.ranks import Ranks, at_root
from mpi_compress.guard.checks import Subject, refuse
from mpi_compress.guard.verbs import watched
from mpi_compress.job.tables import Ending
from mpi_compress.messages.conventions import conventions_of
from mpi_compress.messages.kinds import Dense, Vector
from mpi_compress.preparing.runs import Prepared, attributes_of
from mpi_compress.preparing.shapes import rank_0
from mpi_compress.problem.datasets.store import outcome
from mpi_compress.problem.rows import Rows
from mpi_compress.results.columns import LEFT_OUT, schema
from mpi_compress.results.files import checkpoint_of, part_of
from mpi_compress.results.locks import BeingWritten
from mpi_compress.results.reader import read
from mpi_compress.results.summary import why_ended
from mpi_compress.results.writer import LostRows, Mark, Recorder
from mpi_compress.saving.checkpoint import Checkpoint, Header, remove_checkpoint, schema_of
from mpi_compress.saving.saved_states import Expected

DONE = "done"
_IN_A_TASK = 600.0  # seconds that a SLURM task waits for another process, which may be left of it on a node that is lost
_LOOK_SECONDS = (0.1, 5.0)  # between two looks at what another process is writing: at first, and at most
AGAIN = "run the same command again to go on"
_told_once = cache(print_line)  # a line that is the same for many runs


@dataclass(frozen=True)
class How:
    """How runs are executed."""

    ranks: Ranks
    fresh: bool
    quiet: bool
    force: bool
    interrupts: Interrupts
    watch: Watch = field(default_factory=Watch)
    laps: Laps = field(default_factory=Laps)
    again: str = AGAIN
    keeper: Callable[..., Keeper] = Keeper  # what looks at the states between rounds
    guards: bool = True  # False: users' parts are run as they are, since what they do is compared
    shared: bool = False  # with other processes, as the trials of [tune] are: a run of another one is waited for
    lines: bool = True  # a line for each run that ends; False where a table follows
    details: bool = False  # a line for each trial, too
    trials: Iterator[int] = field(default_factory=lambda: itertools.count(1))  # numbers of trials, over all stages

    @property
    def tells(self) -> bool:
        """True if this rank says what is going on."""
        return self.ranks.is_root and not self.quiet

    @property
    def tells_ends(self) -> bool:
        """True if this rank says how each of its runs ended."""
        return self.tells and (self.details if self.shared else self.lines)


@dataclass(frozen=True)
class Begun:
    """A run that is ready, or the reason why it is not; at rank 0."""

    recorder: Recorder | None = None
    header: Header | None = None  # of the checkpoint to go on from
    instead: str = ""  # DONE, or why waiting for another process ended


def execute(
    p: Prepared, file: Path, how: How, kept: dict[Any, dict[int, Rows]], tuned: Mapping[str, Any] | None, turn: Turn
) -> Path:
    """Execute a run; its result, or the .part of one that failed. Stopped if it was asked to end, and is saved.

    Args:
        kept: keeps the rows of the workers hosted here for the next run.
        tuned: what [tune] found, for the result.
        turn: which of several runs it is, for the progress.
    """
    run = _Execution(p, file, how, kept)
    if how.tells and not how.shared and run.layout.warning:
        _told_once(run.layout.warning)
    how.laps.end("read")
    recorder, instead = run.begin(tuned)
    how.laps.end("file")
    if instead:
        run.exchange.close()
        if instead == DONE:
            return file
        raise Stopped(f"{p.spec.label}: stopped by {instead} while another process executes it; {how.again}")
    with Progress(p.spec.label, p.spec.stop.rounds, not how.tells, turn) as progress, how.interrupts.in_rounds():
        keeper, untried = run.keeper(recorder, progress), list[str]()
        try:
            if how.guards:
                how.ranks.compiling_once(lambda: untried.append(rehearse(p, run.sample)))
            how.laps.end("rehearse")
            s = Subject(p.algorithm, parts_of(p, p.algorithm))
            algorithm = watched(p.algorithm) if how.guards else p.algorithm
            with np.errstate(over="ignore"):  # what goes beyond floats is refused, and said in a line
                verdict, x = loop_of(algorithm)(algorithm, Streams(p.spec.seed), p.x0, keeper.observer, keeper)
            if how.guards and s.held:  # on every rank alike
                how.ranks.each(partial(refuse, s, "memory"))
            if recorder is not None:
                how.laps.end("rounds")
                _end(recorder, verdict, keeper, x, how)
        except BaseException as error:
            return _fail(error, p, file, recorder, how)
    run.exchange.close()  # not after an error, for then the other ranks are elsewhere
    return _report(p, file, verdict, keeper, how, *untried)


class _Execution:
    """A prepared run on its way to its rounds, on every rank."""

    def __init__(self, p: Prepared, file: Path, how: How, kept: dict[Any, dict[int, Rows]]):
        self.p, self.file, self.how = p, file, how
        ranks, workers = how.ranks, p.spec.workers
        patience = 0.0 if p.algorithm.shares_memory else workers.patience_seconds  # without rounds some wait while others work
        cores = len(own_cores()) * ranks.size // len(ranks.ranks_here) if ranks.crowded else None
        self.layout = rank_0(p.spec, p.problem.data.nonzeros, p.problem.data.n_samples, p.problem.dim, ranks.size, cores)
        master = "worker" if self.layout.hosts else "dedicated"
        self.exchange = ranks.exchange(workers.count, workers.exchange, master, patience, workers.fold)
        rows = hosted_rows(p, self.exchange, ranks, kept)
        self.evaluator = evaluator_of(p, self.exchange, rows, how.watch if ranks.is_root else None)
        self.sample = ranks.on_root(lambda: p.problem.data.read(0, 1))

    def begin(self, tuned: Mapping[str, Any] | None) -> tuple[Recorder | None, str]:
        """Begin the result, or go on with it: its recorder at rank 0, and on every rank why the run is not begun, "" if it is."""
        p, how, theory = self.p, self.how, self.evaluator.theory
        attributes = {
            **attributes_of(p, self.exchange, how.ranks),
            **({"layout": str(self.layout)} if how.ranks.size > 1 else {}),
            **({**theory.attributes(p.algorithm), **of_theorem(p.algorithm)} if theory else {}),
            **({} if tuned is None else {"tuned": json.dumps(tuned)}),
            **({"metrics": json.dumps(marks)} if (marks := how.watch.marks(p.spec)) else {}),
        }
        left_out = [LEFT_OUT] * (p.problem.f_star_source == LEFT_OUT)  # as then rows have no distance
        of_callers = [f"{column} {mark}" for column, mark in how.watch.marks(p.spec).items()]
        columns = schema_of([schema(), *p.algorithm.log.columns, *of_callers, *left_out])
        kept_by_kind = all(is_ours(part) for part in (p.algorithm, p.algorithm.up.compressor, p.algorithm.down.compressor))
        at_root(how.ranks, partial(first_states, p, self.sample))  # refuses users' states before the result is begun
        expected = Expected(kept_by_kind, p.problem.dim, type(p.algorithm))
        self.saved = Checkpoint(checkpoint_of(self.file), p.run_id, columns, expected)
        begun = at_root(how.ranks, partial(self._begin_in_turn, attributes)) or Begun()
        header, instead = how.ranks.on_root(lambda: (begun.header, begun.instead))
        self.saved = replace(self.saved, header=header)
        return begun.recorder, instead

    def keeper(self, recorder: Recorder | None, progress: Progress) -> Keeper:
        """The run's keeper, with its observer."""
        p, how, spec = self.p, self.how, self.p.spec
        f_star = p.problem.f_star if spec.log.evaluate is None else nan  # a sample of the rows says nothing about the gap
        sink, see = recorder.append if recorder else ignore, partial(how.watch.see, spec.label)
        corrects = p.algorithm.first == "gradient" or p.algorithm.up.compressor.makes is not Dense
        count = conventions_of(spec.log.count)
        log = LogSettings(p.problem.data.n_samples, f_star, spec.log.every, count, corrects, sink, see, progress)
        observer = Observer(self.evaluator, spec.cost, spec.stop, log)
        return how.keeper(self.saved, spec.checkpoint, observer, recorder, how.interrupts.wish)

    def _begin_in_turn(self, attributes: Mapping[str, Any]) -> Begun:
        """Begin; if another process executes the run, wait in a SLURM task or where runs are shared, else raise BeingWritten. At
        rank 0."""
        p, how = self.p, self.how
        pause, longest = _LOOK_SECONDS
        begun, waited, in_task = time.monotonic(), False, "SLURM_JOB_ID" in os.environ
        while True:
            if (waited or (how.shared and not how.fresh)) and serves(self.file, p.spec, how.watch):
                return Begun(instead=DONE)
            try:
                return self._opened(attributes)
            except BeingWritten:
                if not (how.shared or in_task):
                    raise
            if not waited and not how.quiet:
                print_line(f"{p.spec.label}: another process executes this {'trial' if how.shared else 'run'}; waiting for it")
            waited = True
            if wish := how.interrupts.wish():
                return Begun(instead=wish)
            if not how.shared and time.monotonic() > begun + _IN_A_TASK:
                return Begun(instead=f"{_IN_A_TASK:g} s of waiting")
            time.sleep(pause)
            pause = min(1.5 * pause, longest)

    def _opened(self, attributes: Mapping[str, Any]) -> Begun:
        """The result's recorder, and the checkpoint to go on from."""
        p, label, checkpoint, header = self.p, self.p.spec.label, self.saved.file, None
        n, last = p.spec.workers.count, inf if p.spec.stop.rounds is None else p.spec.stop.rounds
        once = {f"split/{name}": values for name, values in outcome(p.problem.data, n).items()}
        once |= {"final/x_star": p.problem.x_star} if p.problem.x_star is not None else {}

        def mark() -> Mark | None:
            nonlocal header
            if not self.how.fresh and checkpoint.exists():
                header = self.saved.found(last, first_states(p, self.sample), Counters.begun(n), n)
                if header is None:
                    print_line(f"{label}: begins again, for {checkpoint} is damaged, or of another version")
            return header.mark if header else None

        try:
            recorder = Recorder(self.file, attributes, mark, once)
        except LostRows as lost:
            print_line(f"{label}: begins again, for {part_of(self.file)} does not go with its checkpoint ({lost})")
            recorder, header = Recorder(self.file, attributes, arrays=once), None
        if header is None:
            remove_checkpoint(checkpoint)
        elif not self.how.quiet:
            print_line(f"{label}: goes on from round {header.k}")
        return Begun(recorder, header)


def _end(recorder: Recorder, verdict: Ending, keeper: Keeper, x: Vector, how: How) -> None:
    """Complete the result, and remove the checkpoint; or keep both. At rank 0."""
    if verdict is Ending.STOPPED:
        recorder.abandon("stopped", f"stopped by {keeper.reason}")
        return
    attributes: dict[str, Any] = {"mpi_bytes_received_up": keeper.exchange.bytes_received_up}
    attributes |= {"wall": json.dumps(how.laps.taken())}
    attributes |= {"until": mark_of(how.watch.until)} if keeper.observer.ended_by_caller else {}
    recorder.finish(verdict.name.lower(), keeper.observer.reason, x, attributes)
    remove_checkpoint(keeper.saved.file)


def _fail(error: BaseException, p: Prepared, file: Path, recorder: Recorder | None, how: How) -> Path:
    """Keep the records so far. The error is raised again, unless the other runs can go on: those of a single process."""
    if recorder is not None:
        recorder.abandon("failed" if isinstance(error, Exception) else "stopped", f"{type(error).__name__}: {error}")
    of_the_run = isinstance(error, Exception) and not isinstance(error, UserError) and error is not how.watch.error
    if of_the_run and how.ranks.size == 1:
        print_line(f"{p.spec.label}: failed, the others go on: {text_of(error)}")
        return part_of(file)
    if isinstance(error, UserError) and p.spec.own:
        where = p.spec.where if not str(error).startswith(p.spec.where) else ""
        raise type(error)(f"{where}{error}{'' if ', line ' in str(error) else place_in_part(error)}") from None
    raise error


def _report(p: Prepared, file: Path, verdict: Ending, keeper: Keeper, how: How, untried: str = "") -> Path:
    """Print how the run ended, at rank 0, and why no two rounds of it could be tried before, so that nothing is known of what its
    parts remember outside of their states; raises Stopped if it was asked to end."""
    if verdict is Ending.STOPPED:
        raise Stopped(f"{p.spec.label}: stopped by {keeper.reason}, and saved; {how.again}")
    if untried and how.tells:
        print_line(f"{p.algorithm.name}: two rounds could not be tried before ({untried}); run --verify tries several layouts")
    if how.tells_ends:
        why, sent = keeper.observer.reason, keeper.observer.counters.wire_bits_up
        if how.shared and not why:  # of a trial: whether it came down to its target, or to the end of its budget
            why = why_ended(read(file))
        print_line(f"{p.spec.label}: {verdict.name.lower()}{f' ({why})' if why else ''}, {bits_text(sent)} up, {file}")
    return file
