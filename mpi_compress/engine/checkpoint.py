"""A run's whole state in a file beside its result: a stopped run goes on from it, on any ranks, to the same bytes.

It holds a header, the states of node and master, and each worker's state in worker order, as arrays and JSON. It is never
part of the HDF5 file, which a kill can damage. It is written, synced and then renamed, so it is always whole. Its header names
the schema of all states, so that code with other states begins again.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from mpi_compress.core.errors import UserError
from mpi_compress.engine.counting import Counters
from mpi_compress.engine.observer import Observer
from mpi_compress.job.tables import Every, Verdict
from mpi_compress.results.writer import Mark, Recorder, sync
from mpi_compress.saving.frames import Frame, FrameWriter, dump, frames_in, schema_of
from mpi_compress.saving.saved_states import UNKNOWN, Damaged, Expected, load

_FORMAT = "arrays and JSON"
_LARGEST = 2**62
_ASK_SECONDS = 0.2  # about how often the ranks ask each other whether to save or to end


@dataclass
class States:
    """The states of a run before round k."""

    k: int
    node: Any
    master: Any  # None on ranks without the master
    workers: dict[int, Any]  # of the workers hosted here
    up: dict[int, Any] = field(default_factory=dict)  # what their compressors remember
    down: Any = None  # what the master's compressor remembers


@dataclass(frozen=True)
class Header:
    """The run, the round and the schema of a checkpoint."""

    schema: str
    run_id: str
    k: int  # rounds played
    mark: Mark  # how far the result's rows went
    received: int  # bytes that came from other ranks as uplink


@dataclass(frozen=True)
class _Common:
    """What is saved once, beside the master's state."""

    node: Any
    counters: Counters


@dataclass(frozen=True)
class _OfMaster:
    """What is saved of the master: its state, and its compressor's."""

    master: Any
    compressor: Any


@dataclass(frozen=True)
class _OfWorker:
    """What is saved for each worker: its state, its compressor's, its objective's counts, and its share of its rank's seconds."""

    worker: Any
    compressor: Any
    samples: int
    seconds: float
    borrowed: float
    sends: float


@dataclass(frozen=True)
class Place:
    """Where a run is saved, and the checkpoint that it goes on from."""

    file: Path
    run_id: str
    schema: str
    header: Header | None  # of the checkpoint to go on from; None: begin
    expected: Expected


def schema_with(first: States, columns: list[str]) -> str:
    """The schema of the checkpoints of a run, from its first states."""
    states = (first.node, first.workers[0], first.up[0], first.master, first.down)
    saved = (Header, Mark, _Common, _OfMaster, _OfWorker, Counters, states)
    return schema_of(saved, [_FORMAT, metadata.version("mpi-compress"), *columns])


def _being_written(file: Path) -> Path:
    return file.with_name(file.name + ".new")


def remove_checkpoint(file: Path) -> None:
    """Remove a checkpoint, and an unfinished one that a killed program left."""
    file.unlink(missing_ok=True)
    _being_written(file).unlink(missing_ok=True)


def read_header(file: Path) -> Header | None:
    """The header of a checkpoint; None unless the file is there, whole and readable."""
    try:
        with file.open("rb") as stored:
            first, *_ = (_header(frame) if i == 0 else None for i, frame in enumerate(frames_in(stored)))
    except (OSError, EOFError, ValueError):
        return None
    return first


def _header(frame: Frame) -> Header:
    """The header in a frame; Damaged if a number in it cannot be."""
    header: Header = load(frame, Header("", "", 0, Mark(0, {}), 0), Expected(True, 0))
    sums = header.mark.sums
    if not all(0 <= number < _LARGEST for number in (header.k, header.mark.rows, header.received, *sums.values())):
        raise Damaged("a number of the header is none")
    if not all(type(name) is str and "/" in name for name in sums):
        raise Damaged("a column of the header has no name")
    return header


def header_of(file: Path, run_id: str, schema: str, last: float, first: States, n: int, expected: Expected) -> Header | None:
    """The header of a checkpoint if it is of this run and this schema, and if all states in it can be read.

    Args:
        last: the run's last round; inf if it has none.
        first: states like those that the run begins with; the workers' are those of worker 0 alone.
        n: workers.
    """
    header = read_header(file)
    if header is None or (header.schema, header.run_id) != (schema, run_id) or header.k > last:
        return None
    common, master = _Common(first.node, Counters.begun(n)), _OfMaster(first.master, first.down)
    like = [UNKNOWN, common, master, *[_of_worker(first.workers[0], first.up[0])] * n]
    try:
        with file.open("rb") as stored:
            for frame, state in zip(frames_in(stored), like, strict=True):
                if state is not UNKNOWN:
                    load(frame, state, expected)
    except (OSError, EOFError, ValueError):
        return None
    return header


def _of_worker(first: Any, compressor: Any) -> _OfWorker:
    """What is saved of a worker in its first state."""
    return _OfWorker(first, compressor, 0, 0.0, 0.0, 0.0)


class Keeper:
    """Saves a run at intervals and when it is asked to end, all ranks in the same round, and restores it.

    Args:
        place: where the run is saved, by rank 0.
        recorder: of the result, at rank 0.
        wish: why this process should end now, "" if it should not.
    """

    def __init__(self, place: Place, every: Every, observer: Observer, recorder: Recorder | None, wish: Callable[[], str]):
        self.place, self.every, self.observer, self.recorder, self.wish = place, every, observer, recorder, wish
        self.exchange, self.objectives = observer.exchange, observer.objectives
        self.reason = ""  # why the run ended before it was done
        self._saved_in = self._asked_in = self._ask_in = place.header.k if place.header else 0  # rounds
        self._saved_at = self._asked_at = time.monotonic()

    def restore(self, first: States) -> States:
        """The states to begin with: those that were saved, or the first ones."""
        header = self.place.header
        if header is None:
            return first
        stored = self.place.file.open("rb") if self.exchange.is_root else None
        frames = frames_in(stored) if stored else iter(())
        next(frames, None)
        common: _Common = self._read(self.exchange.consult("", lambda _: next(frames)), _Common(first.node, self.observer.counters))
        master = self.exchange.consult("", lambda _: next(frames))
        self.observer.counters = common.counters
        if not self.exchange.is_root:
            self.observer.counters.go_on_elsewhere()
        self.observer.clock.sends = 0.0
        self.exchange.bytes_received_up = header.received
        dealt = zip(first.workers.items(), self.exchange.deal(frames), strict=True)
        saved = {i: self._read(frame, _of_worker(worker, first.up.get(i))) for (i, worker), frame in dealt}
        if stored:
            stored.close()
        of_master = _OfMaster(first.master, first.down)
        if self.exchange.has_master:
            of_master = self._read(master, of_master)
        workers = {i: self._give_back(i, each) for i, each in saved.items()}
        up = {i: each.compressor for i, each in saved.items()}
        return States(header.k, common.node, of_master.master, workers, up, of_master.compressor)

    def _read(self, frame: Frame, first: Any) -> Any:
        """A saved state; UserError if it does not go with the first one, though rank 0 could read it."""
        try:
            return load(frame, first, self.place.expected)
        except Damaged as damage:
            raise UserError(f"{self.place.file}: does not go with this run ({damage}); --fresh begins again") from None

    def _give_back(self, i: int, saved: _OfWorker) -> Any:
        """Worker i's state; what its objective counted goes on from there."""
        f = self.objectives[i]
        f.samples, f.seconds, f.borrowed = saved.samples, saved.seconds, saved.borrowed
        self.observer.clock.sends += saved.sends
        return saved.worker

    def look(self, states: States) -> Verdict:
        """Save if it is time to, or if the run should end; the verdict is the same on every rank."""
        if states.k < self._ask_in:
            return Verdict.GO_ON
        save, self.reason, self._ask_in = self.exchange.consult(self.wish(), partial(self._decide, states.k))
        if save:
            self._save(states)
            self.exchange.meet()  # or other ranks' clocks would run while rank 0 writes
        return Verdict.STOPPED if self.reason else Verdict.GO_ON

    def _decide(self, k: int, wishes: list[str]) -> tuple[bool, str, int]:
        """True if it is time to save, the reason to end or "", and the round in which to ask again; at rank 0."""
        now = time.monotonic()
        reason = next((wish for wish in wishes if wish), "")
        save = bool(reason) or self.every.is_over(k - self._saved_in, now - self._saved_at)
        if save:
            self._saved_in, self._saved_at = k, now
        played, elapsed = k - self._asked_in, max(now - self._asked_at, 1e-6)
        pace = min(2 * played, int(played * _ASK_SECONDS / elapsed))
        self._asked_in, self._asked_at = k, now
        ask_in = k + max(1, pace)
        return save, reason, min(ask_in, self._saved_in + self.every.every) if isinstance(self.every.every, int) else ask_in

    def _save(self, states: States) -> None:
        """Save the run, worker by worker. UserError at rank 0 if the file cannot be written; the one before it stays."""
        workers = self._worker_frames(states)
        if not self.exchange.is_root:
            self.exchange.collect(workers, None, np.uint8)
            return
        assert self.recorder is not None
        file, new = self.place.file, _being_written(self.place.file)
        try:
            mark = self.recorder.mark()
            with new.open("wb") as out:
                writer = FrameWriter(out)
                writer.add(dump(Header(self.place.schema, self.place.run_id, states.k, mark, self.exchange.bytes_received_up)))
                writer.add(dump(_Common(states.node, self.observer.counters)))
                writer.add(dump(_OfMaster(states.master, states.down)))
                self.exchange.collect(workers, writer, np.uint8)
                out.flush()
                os.fsync(out.fileno())
            os.replace(new, file)
            sync(file.parent)
        except OSError as error:
            new.unlink(missing_ok=True)
            raise UserError(f"{file}: the checkpoint cannot be written: {error.strerror or error}") from None

    def _worker_frames(self, states: States) -> Iterator[Frame]:
        sends = self.observer.clock.sends / max(1, len(states.workers))
        for i, worker in states.workers.items():
            f = self.objectives[i]
            yield dump(_OfWorker(worker, states.up.get(i), f.samples, f.seconds, f.borrowed, sends))
