"""One run: begun, or continued from its checkpoint, and run to its end."""

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np

from mpi_compress.algorithms import Algorithm
from mpi_compress.core.blame import place_in_part, text_of
from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import Progress, bits_text, ignore, print_line
from mpi_compress.core.signals import Stopped
from mpi_compress.core.streams import Streams
from mpi_compress.engine.counting import Counters
from mpi_compress.engine.earlier_runs import COURSE, serves, shorter_run
from mpi_compress.engine.hosting import evaluator_of, hosted_rows
from mpi_compress.engine.keeper import Keeper
from mpi_compress.engine.meter import attributes as of_theorem
from mpi_compress.engine.observer import Observer
from mpi_compress.engine.request import Request
from mpi_compress.engine.warm_up import first_states, loop_of, warm_up
from mpi_compress.guard import hidden_state
from mpi_compress.guard.of_messages import contradicted
from mpi_compress.job.tables import Ending, Tables
from mpi_compress.messages.conventions import conventions_of
from mpi_compress.messages.kinds import Dense, Vector
from mpi_compress.preparing.problems import follows_seed
from mpi_compress.preparing.runs import Prepared, attributes_of
from mpi_compress.problem.datasets.opening import refuse_changed
from mpi_compress.problem.datasets.store import outcome
from mpi_compress.problem.rows import Rows
from mpi_compress.results.columns import LEFT_OUT, schema
from mpi_compress.results.files import checkpoint_of, part_of
from mpi_compress.results.locks import BeingWritten
from mpi_compress.results.reader import ANY_SEED, DOUBTS, read
from mpi_compress.results.reader import attributes as attributes_of_file
from mpi_compress.results.writer import LostRows, Mark, Recorder, Row
from mpi_compress.saving.checkpoint import Checkpoint, Header, States, remove_checkpoint, schema_of
from mpi_compress.saving.saved_states import Expected

DONE = "done"
_IN_A_TASK = 600.0  # seconds that a SLURM task waits for another process, which may be left of it on a node that is lost
_LOOK_SECONDS = (0.1, 5.0)  # between two looks at what another process is writing: at first, and at most


class Execution:
    """A prepared run on its way to its result, on every rank.

    Args:
        kept: keeps the rows of the workers hosted here for the next run.
        turn: which of several runs it is, for the progress.
    """

    def __init__(self, p: Prepared, file: Path, request: Request, kept: dict[Any, dict[int, Rows]], turn: str):
        self.p, self.file, self.request, self.turn = p, file, request, turn
        ranks, workers = request.ranks, p.spec.workers
        patience = workers.patience_seconds if isinstance(p.algorithm, Algorithm) else 0.0  # without rounds some wait
        self.exchange = ranks.exchange(workers.count, workers.exchange, workers.master, patience)
        self.evaluator = evaluator_of(p, self.exchange, hosted_rows(p, self.exchange, ranks, kept))
        self.sample = ranks.on_root(lambda: p.problem.data.read(0, 1))
        kept_by_kind = not any(map(p.spec.owns, (p.spec.algorithm, p.spec.up.compressor, p.spec.down.compressor)))
        expected = Expected(kept_by_kind, p.problem.dim, type(p.algorithm))
        self.saved = Checkpoint(checkpoint_of(file), p.run_id, _schema_of(p), expected)
        self.held = hidden_state.contents(p.spec.own)  # before the run
        self.recorder: Recorder | None = None  # at rank 0
        self.raised_by_caller: BaseException | None = None  # what `on_row` raised

    def execute(self, tuned: Mapping[str, Any] | None) -> Path:
        """The result, or the .part of a run that failed; Stopped if it was asked to end, and is saved. `tuned` is what [tune]
        found."""
        p, request, stopwatch = self.p, self.request, self.request.stopwatch
        stopwatch.end("read")
        instead = self._begin(tuned)
        stopwatch.end("file")
        if instead:
            self.exchange.close()
            if instead == DONE:
                return self.file
            raise Stopped(f"{p.spec.label}: stopped by {instead} while another process executes it; {request.again}")
        with Progress(p.spec.label, p.spec.stop.rounds, not request.tells, self.turn) as progress, request.interrupts.in_rounds():
            observer, streams = self._observer(progress), Streams(p.spec.seed)
            keeper = request.keeper(self.saved, p.spec.checkpoint, observer, streams, self.recorder, request.interrupts.wish)
            try:
                request.ranks.compiling_once(partial(warm_up, p, self.sample))
                stopwatch.end("warm-up")
                with np.errstate(over="ignore"):  # what goes beyond floats is refused, and said in a line
                    verdict, x = loop_of(p.algorithm)(p.algorithm, streams, p.x0, observer, keeper)
                refuse_changed()
                has_drawn = keeper.has_drawn()
                hidden = hidden_state.kept(self.held) | hidden_state.drawn(self.held)
                kept = self.exchange.allreduce(hidden, lambda each: max(each, key=len))
                request.kept.update(kept)
                if verdict is not Ending.STOPPED:
                    keeper.note_end()
                if self.recorder is not None:
                    stopwatch.end("rounds")
                    attributes = {} if has_drawn else self._of_equal_runs(tuned)
                    doubts = "; ".join([*kept, *self._contradicted()])
                    attributes = {**attributes, DOUBTS: doubts} if doubts else attributes
                    self._end(self.recorder, verdict, keeper, x, attributes)
                if verdict is not Ending.STOPPED:
                    self._keep(verdict, keeper)
            except BaseException as error:
                return self._fail(error)
        self.exchange.close()  # not after an error, for then the other ranks are elsewhere
        return self._report(verdict, keeper)

    def _begin(self, tuned: Mapping[str, Any] | None) -> str:
        """Begin the result, or go on with it; why the run is not begun, "" if it is. All ranks call it together."""
        p, ranks, theory = self.p, self.request.ranks, self.evaluator.theory
        attributes = {
            **attributes_of(p, self.exchange, ranks),
            **({**theory.attributes(p.algorithm), **of_theorem(p.algorithm)} if theory else {}),
            **({} if tuned is None else {"tuned": json.dumps(tuned)}),
            **({"metrics": json.dumps(p.spec.marks)} if p.spec.metrics else {}),
        }
        instead = ranks.on_root(lambda: self._begin_in_turn({**attributes, COURSE: p.spec.id_of_all("stop", tuned)}))
        self.saved = replace(self.saved, header=ranks.on_root(lambda: self.saved.header))
        return instead

    def _begin_in_turn(self, attributes: Mapping[str, Any]) -> str:
        """Begin; if another process executes the run, wait in a SLURM task or where runs are shared, else raise BeingWritten. DONE,
        or why waiting ended, if the run is not begun. At rank 0."""
        label, request = self.p.spec.label, self.request
        first = first_states(self.p, self.sample)  # refuses users' states before the result is begun
        pause, longest = _LOOK_SECONDS
        begun, waited, in_task = time.monotonic(), False, "SLURM_JOB_ID" in os.environ
        while True:
            if (waited or (request.shared and not request.fresh)) and serves(self.file, self.p.spec):
                return DONE
            try:
                self._open(attributes, first)
                return ""
            except BeingWritten:
                if not (request.shared or in_task):
                    raise
            if not waited and not request.quiet:
                print_line(f"{label}: another process executes this {'trial' if request.shared else 'run'}; waiting for it")
            waited = True
            if wish := request.interrupts.wish():
                return wish
            if not request.shared and time.monotonic() > begun + _IN_A_TASK:
                return f"{_IN_A_TASK:g} s of waiting"
            time.sleep(pause)
            pause = min(1.5 * pause, longest)

    def _open(self, attributes: Mapping[str, Any], first: States) -> None:
        """Open the result, and find the checkpoint to go on from."""
        p, label, checkpoint = self.p, self.p.spec.label, self.saved.file
        n, last = p.spec.workers.count, inf if p.spec.stop.rounds is None else p.spec.stop.rounds
        once = {f"split/{name}": values for name, values in outcome(p.problem.data, n).items()}
        once |= {"final/x_star": p.problem.x_star} if p.problem.x_star is not None else {}
        header: Header | None = None
        rows = part_of(self.file)

        def kept() -> tuple[Path, Mark] | None:
            nonlocal header, rows
            if self.request.fresh:
                return None
            if checkpoint.exists() and (rows.stat().st_size or not self.file.exists()):
                header = self.saved.found(last, first, Counters.begun(n), n)
                if header is None:
                    print_line(f"{label}: begins again, for {checkpoint} is damaged, or of another version")
            elif shorter := shorter_run(p.spec, self.file, attributes[COURSE]):
                states = replace(self.saved, file=checkpoint_of(shorter), run_id=attributes_of_file(shorter)["run_id"])
                header = states.found(last, first, Counters.begun(n), n)
                rows, self.saved = (shorter, replace(self.saved, shorter=states.file)) if header else (rows, self.saved)
            return (rows, header.mark) if header else None

        try:
            self.recorder = Recorder(self.file, attributes, kept, once)
        except LostRows as lost:
            print_line(f"{label}: begins again, for {part_of(self.file)} does not go with its checkpoint ({lost})")
            self.recorder, header = Recorder(self.file, attributes, arrays=once), None
        self.saved = replace(self.saved, header=header)
        if header is None:
            remove_checkpoint(checkpoint)
        elif not self.request.quiet and (not self.request.shared or self.request.details):
            where = f", the last one of {rows}" if self.saved.shorter else ""
            print_line(f"{label}: goes on from round {header.k:,}{where}")

    def _observer(self, progress: Progress) -> Observer:
        p, log, problem = self.p, self.p.spec.log, self.p.problem
        return Observer(
            self.evaluator, p.spec.cost, p.spec.stop, problem.data.n_samples,
            f_star=problem.f_star if log.evaluate is None else nan,  # a sample of the rows says nothing about the gap
            every=log.rounds, every_ns=log.ns, conventions=conventions_of(log.count),
            corrects=p.algorithm.first == "gradient" or p.algorithm.up.compressor.makes is not Dense,
            sink=self._take if self.recorder else ignore, progress=progress,
        )  # fmt: skip

    def _take(self, row: Row) -> None:
        """Keep a row, and pass it on to the caller; at rank 0."""
        assert self.recorder is not None
        self.recorder.append(row)
        if (on_row := self.request.on_row) is not None:
            record = {"label": self.p.spec.label, **row.trace, "seconds": row.timing["seconds"]}
            try:
                on_row({name: value.item() if isinstance(value, np.generic) else value for name, value in record.items()})
            except BaseException as error:
                self.raised_by_caller = error
                raise

    def _of_equal_runs(self, tuned: Tables | None) -> Tables:
        """The attribute by which runs with other seeds find this one, which has drawn no random number; at rank 0."""
        spec = self.p.spec
        repeats = isinstance(self.p.algorithm, Algorithm) and "seconds" not in spec.stop.columns
        return {ANY_SEED: spec.id_of_all("seed", tuned)} if repeats and not follows_seed(spec, self.p.problem) else {}

    def _contradicted(self) -> dict[str, str]:
        """What draws prove wrong of what users' compressors of this run state. At rank 0."""
        found, proved = dict[str, str](), self.request.proved
        for link in (self.p.algorithm.up, self.p.algorithm.down) if not self.request.shared else ():
            if self.p.spec.owns(link.compressor):
                if (key := f"{link.compressor!r} {link.dim}") not in proved:
                    proved[key] = contradicted(link)
                found |= proved[key]
        return found

    def _end(self, recorder: Recorder, verdict: Ending, keeper: Keeper, x: Vector, attributes: Tables) -> None:
        """Complete the result, with further attributes, or keep what there is for later. At rank 0."""
        if verdict is Ending.STOPPED:
            recorder.abandon("stopped", f"stopped by {keeper.reason}")
            return
        measured = {"mpi_bytes_received_up": self.exchange.bytes_received_up, "wall": json.dumps(self.request.stopwatch.taken())}
        recorder.finish(verdict.name.lower(), keeper.observer.reason, x, {**attributes, **measured})

    def _keep(self, verdict: Ending, keeper: Keeper) -> None:
        """Keep the last states, from which a longer run can go on, or remove the checkpoint. All ranks call it together."""
        spec, ended_by_itself = self.p.spec, not keeper.observer.finite or bool(self.p.spec.stop.own)
        repeats = isinstance(self.p.algorithm, Algorithm) and verdict is Ending.COMPLETE and not ended_by_itself
        with suppress(UserError):  # a full disk: the result is there
            if repeats and spec.checkpoint.keep and keeper.keep():
                return
        if self.recorder is not None:
            remove_checkpoint(self.saved.file)

    def _fail(self, error: BaseException) -> Path:
        """Keep the records so far. The error is raised again, unless the other runs can go on: those of a single process."""
        spec, is_ordinary = self.p.spec, isinstance(error, Exception)
        if self.recorder is not None:
            self.recorder.abandon("failed" if is_ordinary else "stopped", f"{type(error).__name__}: {error}")
        of_the_run = is_ordinary and not isinstance(error, UserError) and error is not self.raised_by_caller
        if of_the_run and self.request.ranks.size == 1:
            print_line(f"{spec.label}: failed, the others go on: {text_of(error)}")
            return part_of(self.file)
        if isinstance(error, UserError) and spec.own:
            where = spec.where if not str(error).startswith(spec.where) else ""
            raise type(error)(f"{where}{error}{'' if ', line ' in str(error) else place_in_part(error)}") from None
        raise error

    def _report(self, verdict: Ending, keeper: Keeper) -> Path:
        """Print how the run ended, at rank 0; raises Stopped if it was asked to end."""
        label, request = self.p.spec.label, self.request
        if verdict is Ending.STOPPED:
            raise Stopped(f"{label}: stopped by {keeper.reason}, and saved; {request.again}")
        if request.tells_ends:
            why, sent = keeper.observer.reason, keeper.observer.counters.wire_bits_up
            if request.shared and not why:  # of a trial: whether it came down to its target, or to the end of its budget
                why = read(self.file).ended_by
            label += f", seed {self.p.spec.seed}" * ("seed" in self.p.spec.written)
            print_line(f"{label}: {verdict.name.lower()}{f' ({why})' if why else ''}, {bits_text(sent)} up, {self.file}")
        return self.file


def _schema_of(p: Prepared) -> str:
    """The schema of the columns of a run."""
    left_out = [LEFT_OUT] * (p.problem.f_star_source == LEFT_OUT)  # as then rows have no distance
    of_metrics = [f"{column} {mark}" for column, mark in p.spec.marks.items()]
    return schema_of([schema(), *p.algorithm.log.columns, *of_metrics, *left_out])
