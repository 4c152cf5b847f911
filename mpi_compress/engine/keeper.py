"""Between two rounds: whether it is time to save the run or to end it, the same on every rank; and the states to begin with."""

import copy
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from mpi_compress.algorithms.memories import one, put
from mpi_compress.core.progress import ignore
from mpi_compress.core.streams import Streams
from mpi_compress.engine.counting import Counters
from mpi_compress.engine.observer import Observer
from mpi_compress.job.tables import Ending, Every
from mpi_compress.problem.datasets.opening import refuse_changed
from mpi_compress.results.writer import Mark, Recorder
from mpi_compress.saving.checkpoint import Checkpoint, Common, OfMaster, OfWorker, States
from mpi_compress.saving.frames import Frame, dump, frames_in, size

KEPT = 2**26  # bytes of the states of a complete run, up to which they are kept
_ASK_SECONDS = 0.2  # about how often the ranks ask each other whether to save or to end


class Keeper:
    """Saves a run at intervals and when it is asked to end, all ranks in the same round, and restores it. `wish` says why this
    process should end now, "" if it should not; `recorder` is the result's, at rank 0."""

    def __init__(
        self, saved: Checkpoint, every: Every, observer: Observer, streams: Streams, recorder: Recorder | None,
        wish: Callable[[], str],
    ):  # fmt: skip
        self.saved, self.every, self.observer, self.recorder, self.wish = saved, every, observer, recorder, wish
        meter = observer.evaluator.meter
        self._streams = [streams, *([meter.streams] if meter else [])]
        self._drew = bool(saved.header and saved.header.drew)  # before; at rank 0 on other ranks, too
        self._states: Any = None
        self._at_end: tuple[Counters, Mark] | None = None  # at rank 0: what a longer run goes on from
        observer.before_last = self.note_end
        self.exchange, self.objectives = observer.exchange, observer.objectives
        self.reason = ""  # why the run ended before it was done
        self._saved_in = self._asked_in = self._ask_in = saved.header.k if saved.header else 0  # rounds
        self._saved_at = self._asked_at = time.monotonic()

    def restore(self, first: States) -> States:
        """The states to begin with: those that were saved, or the first ones."""
        header, exchange, observer, read = self.saved.header, self.exchange, self.observer, self.saved.read
        self._states = first
        if header is None:
            return first
        stored = (self.saved.shorter or self.saved.file).open("rb") if exchange.is_root else None
        frames = frames_in(stored) if stored else iter(())
        next(frames, None)
        common: Common = read(exchange.allreduce("", lambda _: next(frames)), Common(first.node, observer.counters, first.queued))
        master = exchange.allreduce("", lambda _: next(frames))
        observer.counters = common.counters
        if not exchange.is_root:
            observer.counters.go_on_elsewhere()
        observer.clock.sends = 0.0
        exchange.bytes_received_up = header.received
        each: list[OfWorker] = [
            read(frame, OfWorker(one(first.workers, i), first.up[i])) for i, frame in enumerate(exchange.scatter_states(frames))
        ]
        if stored:
            stored.close()
        of_master, fs = OfMaster(first.master, first.down, first.tables), self.objectives
        if exchange.has_master:
            of_master = read(master, of_master)
        for row, saved in enumerate(each):
            fs.samples[row], fs.seconds[row], fs.borrowed[row] = saved.samples, saved.seconds, saved.borrowed
            observer.clock.sends += saved.sends
            put(first.workers, row, saved.worker)
        up = [saved.compressor for saved in each]
        rest = of_master.compressor, common.queued, of_master.tables
        self._states = States(header.k, common.node, of_master.master, first.workers, up, *rest)
        return self._states

    def look(self, states: States) -> Ending:
        """Save if it is time to, or if the run should end; the verdict is the same on every rank."""
        if states.k < self._ask_in:
            return Ending.GO_ON
        asked = self.wish(), self._has_opened
        save, self.reason, self._ask_in = self.exchange.allreduce(asked, partial(self._decide, states.k))
        if save:
            refuse_changed()
            self._save(states)
            self.exchange.barrier()  # or other ranks' clocks would run while rank 0 writes
        return Ending.STOPPED if self.reason else Ending.GO_ON

    def has_drawn(self) -> bool:
        """True if a random stream was opened on any rank, before a stop too. All ranks call it together."""
        self._drew = self.exchange.allreduce(self._has_opened, lambda opened: self._drew or any(opened))
        return self._drew

    def note_end(self) -> None:
        """Note the counts and the rows from which a longer run will go on, unless that is done."""
        self.observer.before_last = ignore  # the states, that this keeps, end with the run, not when Python looks for cycles
        if self.recorder is not None and self._at_end is None:
            self._at_end = copy.deepcopy(self.observer.counters), self.recorder.so_far()

    def keep(self) -> bool:
        """Save the last states beside the finished result, if they are small; False if not. All ranks call it together."""
        states = self._states
        own = size((states.workers, states.up, OfMaster(states.master, states.down, states.tables)))
        if self.exchange.allreduce(own, sum) > KEPT:
            return False
        self._save(states)
        return True

    @property
    def _has_opened(self) -> bool:
        return any(streams.opened for streams in self._streams)

    def _decide(self, k: int, asked: list[tuple[str, bool]]) -> tuple[bool, str, int]:
        """True if it is time to save, the reason to end or "", and the round in which to ask again; at rank 0."""
        now = time.monotonic()
        reason = next((wish for wish, _ in asked if wish), "")
        self._drew = self._drew or any(opened for _, opened in asked)
        save = bool(reason) or self.every.is_over(k - self._saved_in, now - self._saved_at)
        if save:
            self._saved_in, self._saved_at = k, now
        played, elapsed = k - self._asked_in, max(now - self._asked_at, 1e-6)
        pace = min(2 * played, int(played * _ASK_SECONDS / elapsed))
        self._asked_in, self._asked_at = k, now
        ask_in = k + max(1, pace)
        return save, reason, min(ask_in, self._saved_in + self.every.every) if isinstance(self.every.every, int) else ask_in

    def _save(self, states: States) -> None:
        """Save the run, worker by worker; UserError at rank 0 if the file cannot be written."""
        frames = self.exchange.collect(self._worker_frames(states), np.uint8)
        if self.recorder is None:
            next(frames, None)
            return
        counters, mark = self._at_end or (self.observer.counters, None)
        of_all = Common(states.node, counters, states.queued), OfMaster(states.master, states.down, states.tables)
        received = self.exchange.bytes_received_up
        try:
            self.saved.write(states.k, (lambda: mark) if mark else self.recorder.mark, received, self._drew, of_all, frames)
        finally:
            for _ in frames:  # on a full disk, too: other ranks send them
                pass

    def _worker_frames(self, states: States) -> Iterator[Frame]:
        return map(dump, self._of_workers(states))

    def _of_workers(self, states: States) -> Iterator[OfWorker]:
        sends = self.observer.clock.sends / max(1, len(self.objectives))
        fs = self.objectives
        counts = zip(fs.samples.tolist(), fs.seconds.tolist(), fs.borrowed.tolist(), strict=True)
        for row, of_worker in enumerate(counts):
            yield OfWorker(one(states.workers, row), states.up[row], *of_worker, sends)
