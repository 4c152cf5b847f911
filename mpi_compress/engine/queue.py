"""Workers that do not begin together: a queue of arrivals, which is the same on every rank."""

import copy
import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, groupby
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.algorithms import memories
from mpi_compress.algorithms.hosted import HostedWorkers
from mpi_compress.core.streams import Role, Rounds
from mpi_compress.engine.arrivals import AtOnce, decoded, travelled
from mpi_compress.engine.counting import Counts
from mpi_compress.engine.observer import Observer
from mpi_compress.kernels.vectors import lengths_of
from mpi_compress.messages.batch import LENGTH_BYTES, Batch, silent, together
from mpi_compress.messages.kinds import Dense
from mpi_compress.messages.link import Arrived, Link
from mpi_compress.problem.computing import NS
from mpi_compress.results.columns import named
from mpi_compress.saving.checkpoint import States
from mpi_compress.saving.frames import held_in


@dataclass
class Begun:
    """The task that a worker is at."""

    ns: int  # when it begins, by the model's clock
    number: int  # among the worker's tasks; −1: none has begun
    version: int  # of the node: how often the master had acted
    node: Any  # this node; workers that begin at one version share it


@dataclass
class Queued:
    """What every rank knows of the workers' tasks between two acts of the master; what they have computed follows from it."""

    tasks: list[Begun]
    sent: NDArray[np.float64]  # (3,) counts of the master's answers so far, as `Counts` names them
    heard: NDArray[np.float64]  # (n, 3) of these what each worker has heard
    counts: NDArray[np.int64]  # (2, n) each worker's messages in the master's two tables, where its rule has tables

    @classmethod
    def first(cls, node: Any, n: int) -> "Queued":
        """That before the first task."""
        return cls([Begun(0, -1, 0, node) for _ in range(n)], np.zeros(3), np.zeros((n, 3)), np.zeros((2, n), dtype=np.int64))


@dataclass
class Made:
    """What a task comes to. Its worker remembers it when its message arrives: one that is stopped has written nothing."""

    size: int = 0  # bytes of the message
    unit: float = 1.0  # what is timed of it
    message: Batch | None = None  # at the worker's host, as the next ones
    samples: int = 0
    memory: Any = None
    state: Any = None  # of the compressor


@dataclass
class Arrival:
    """A task whose message has arrived."""

    key: tuple[int, int, int]  # nanosecond, worker and number: ties fall to the lower worker
    begun: Begun
    took: int  # nanoseconds of computing
    staleness: int
    made: Made = field(default_factory=Made)

    @property
    def worker(self) -> int:
        return self.key[1]


class ArrivalQueue(AtOnce):
    """Rounds in which the master acts once, by its `Rule`. A worker computes at the node of its task's begin, and draws at its own
    task numbers; a message that is under way arrives. Who begins again hears the answers that it has missed, or all that a node
    knows, whichever is shorter. The mean adds messages in worker order, then by number.

    Messages are computed as tasks begin where their sizes or samples decide when they arrive, else as they arrive: the bits are
    the same.
    """

    def __init__(self, observer: Observer, hosted: HostedWorkers, s: States):
        super().__init__(observer, hosted)
        setting = hosted.algorithm.setting
        self.rule: Any = setting.rule
        self.links, self.links_down, self.computing = setting.cost.clock, setting.cost.of_down.clock, setting.computing
        self.n, self.mine, self.queued, self.tasks = observer.exchange.n, observer.exchange.mine, s.queued, s.queued.tasks
        self.waits_to_compute = self.links is None and self.computing is not None and self.computing.per == "gradient"
        self.remembers = any(each is not None for each in (hosted.workers, *hosted.states))
        self.tau = self.computing.shares(self.n) if self.computing else np.ones(self.n)
        self._events: list[tuple[int, int, int]] = []  # a heap of keys as `Arrival` has them
        self._took, self._made = [0] * self.n, dict[int, Made]()  # by worker, of the tasks they are at
        self._begun_at: dict[float, set[int]] = {}  # workers by the version of their tasks, where they may be stopped
        self._b = Counter[int]()  # messages of each worker that are taken together, where the rule asks for them
        self._waiting: list[int] = []  # workers that begin again after the next act
        self._heard: list[tuple[Any, Any]] = []  # workers (m,), and counts (m, 3) of what they heard since the last act
        self._copied: tuple[int, Any] = (-1, None)  # the newest version of the node
        self._arrivals: list[Arrival] = []  # of the act, in worker order, then by number
        observer.timed = named("model", "queue")
        if self.tasks and self.tasks[0].number >= 0:
            self._schedule(range(self.n))

    def messages(self, node: Any, k: int) -> Batch:
        """The messages of workers hosted here that arrive up to act k; those of one worker lie one after another."""
        if self.tasks[0].number < 0:
            self._begin(range(self.n), node, k, 0)
        arrivals, taken, acts = list[Arrival](), 0, False
        while not acts:
            key = ns, i, number = heapq.heappop(self._events)
            task = self.tasks[i]
            if number != task.number:
                continue  # it was stopped
            each = Arrival(key, copy.copy(task), self._took[i], k - task.version, self._made.pop(i, Made()))
            arrivals.append(each)
            self._remember(each)
            is_taken = each.staleness <= self.rule.stale
            taken += is_taken
            acts = is_taken and self._acts_with(each, taken)
            if not is_taken or (self.rule.again and not acts):
                self._begin([i], node, k, ns)
            else:
                self._waiting.append(i)
        self._last = arrivals[-1].key
        self._arrivals = sorted(arrivals, key=lambda each: each.key[1:])
        if self.waits_to_compute:
            for each, made in zip(self._arrivals, self._compute([(a.worker, a.begun) for a in self._arrivals], True), strict=True):
                each.made = made
        return self._together()

    def _acts_with(self, each: Arrival, taken: int) -> bool:
        """True if the master acts with this message, which is the last of those that it has taken."""
        S = self.rule.each
        if not S:
            return taken == self.rule.wait
        self._b[each.worker] += 1
        return len(self._b) == self.n and S * fsum(1 / b for b in self._b.values()) <= self.n**2

    def arrived(self, ups: Batch, link: Link) -> Arrived | None:
        """What those messages decode to that the master takes, weighted."""
        if ups.refused:
            return None
        lengths = np.array([each.made.size for each in self._arrivals])
        each = self._each = replace(ups, ends=np.cumsum(lengths))
        found = decoded(each, link)
        if found is None:
            return None
        taken = np.array([each.staleness <= self.rule.stale for each in self._arrivals])
        content, said = found.content, np.flatnonzero(lengths)
        if not taken.all():
            rows = np.flatnonzero(taken & (lengths > 0))
            content = link.unpack(together([each.part(i, i + 1) for i in rows.tolist()]))
            said = np.searchsorted(np.flatnonzero(taken), rows)
        kept = [each for each, is_taken in zip(self._arrivals, taken, strict=True) if is_taken]
        who = np.array([a.worker for a in kept])
        if self.rule.weight != "1":
            b = np.bincount(who)
            weights = [self.rule.weighs(a.staleness, float(self.tau[a.worker]), b[a.worker], self.n) for a in kept]
            content = _weighted(content, np.array(weights)[said])
        return Arrived(content, who[said], self.n, found.silence)

    def end(self, s: States, uplink: Link, ups: Batch, downlink: Link, downs: Batch) -> None:
        """The master has acted, and s.node is the next version: workers begin again, and what was done is counted."""
        c, rule, ns = self.observer.counters, self.rule, self._last[0]
        c.model_ns = ns
        self.queued.sent += [held[0] for held in vars(Counts.of(downs, downlink)).values()]
        old = self._begun_at.pop(s.k - rule.stale, set())
        stopped = [i for i in old if i not in self._waiting and self._may_stop(i, s.k - rule.stale)]
        self._begin(sorted([*self._waiting, *stopped]), s.node, s.k + 1, ns)
        self._waiting.clear()
        self._b.clear()
        if len(self._events) > 2 * self.n:  # most are of tasks that were stopped
            self._events = [key for key in self._events if key[2] == self.tasks[key[1]].number]
            heapq.heapify(self._events)
        c.stopped += len(stopped)
        c.gradients += len(self._arrivals)
        for each in self._arrivals:
            if each.staleness > rule.stale:
                c.ignored += 1
            else:
                c.arrivals += 1
                c.staleness_sum += each.staleness
                c.staleness_max = max(c.staleness_max, each.staleness)
                c.model_used += each.took / (NS * self.n)
                c.arrivals_of[each.worker] += 1
                c.busy_of[each.worker] += each.took / NS
        if self.exchange.is_root:
            to, counts = (np.concatenate(each) for each in zip(*self._heard, strict=True))
            heard = Counts(counts[:, 0].astype(np.int64), counts[:, 1], counts[:, 2].astype(np.int64))
            self.observer.count_tasks(uplink, self._each, [a.worker for a in self._arrivals], heard, to.tolist())
        self._heard.clear()

    def _may_stop(self, i: int, version: float) -> bool:
        """True if a worker is still at a task of that version, and has not computed by the last arrival."""
        task = self.tasks[i]
        return task.version == version and (task.ns + self._took[i], i, task.number) > self._last

    def _begin(self, who: Sequence[int], node: Any, version: int, ns: int) -> None:
        """Workers begin again at this version of the node, as soon as they have heard what they have missed by ns."""
        if self._copied[0] != version:
            self._copied = version, copy.deepcopy(node)
        workers, queued = np.array(who, dtype=np.int64), self.queued
        missed = queued.sent - queued.heard[workers]
        missed = np.where(missed[:, :1] <= self._whole[0], missed, self._whole)
        queued.heard[workers] = queued.sent
        self._heard.append((workers[missed[:, 0] > 0], missed[missed[:, 0] > 0]))
        for i, bits in zip(who, missed[:, 0].tolist(), strict=True):
            task = self.tasks[i]
            task.ns, task.number, task.version = travelled(self.links_down, int(bits), ns, i)[0], task.number + 1, version
            task.node = self._copied[1]
        self._schedule(who)

    @cached_property
    def _whole(self) -> NDArray[np.float64]:
        """(3,) the counts of a message with all that a node keeps."""
        link: Link = self.hosted.algorithm.down.whole
        counts = Counts.of(link.encode(Dense(np.zeros((1, link.dim)))), link)
        numbers = sum(held.size for held in held_in(self.tasks[0].node) if isinstance(held, np.ndarray))
        return np.array([held[0] for held in vars(counts).values()]) * max(1.0, numbers / link.dim)

    def _schedule(self, who: Iterable[int]) -> None:
        """Find out when the tasks of workers arrive."""
        tasks, units = self.tasks, dict[int, float]()
        if not self.waits_to_compute:
            made = self._compute([(i, self.tasks[i]) for i in who], False)
            self._made |= dict(zip(who, made, strict=True))
            units = {i: each.unit for i, each in zip(who, made, strict=True)}
        for number, group in groupby(sorted(who, key=lambda i: tasks[i].number), key=lambda i: tasks[i].number):
            workers = [*group]
            if self.computing is not None:
                t = Rounds(number, self.hosted.streams, Role.TIME, np.array(workers))
                times = self.computing.nanoseconds(t, np.array([units.get(i, 1.0) for i in workers]))
                for i, took in zip(workers, times, strict=True):
                    self._took[i] = took
        for i in who:
            task, size = tasks[i], self._made[i].size if i in self._made else 0
            arrives, _ = travelled(self.links, 8 * (LENGTH_BYTES + size) if size else 0, task.ns + self._took[i], i)
            heapq.heappush(self._events, (arrives, i, task.number))
            if self.rule.late == "stop" and self.rule.stale < float("inf"):
                self._begun_at.setdefault(task.version, set()).add(i)

    def _compute(self, tasks: Sequence[tuple[int, Begun]], at_once: bool) -> list[Made]:
        """What tasks of workers, in worker order, then by number, come to. `at_once`: workers remember it."""
        found, alike = [Made() for _ in tasks], dict[tuple[int, int], list[int]]()
        for place, (i, task) in enumerate(tasks):
            if i in self.mine:
                alike.setdefault((task.number, task.version), []).append(place)
        for (number, _), same in sorted(alike.items()):
            rows = np.array([tasks[place][0] - self.mine.start for place in same])
            made = self._computed(tasks[same[0]][1].node, number, rows)
            for place, row, each in zip(same, rows.tolist(), made, strict=True):
                found[place] = each
                if at_once:
                    self._take_over(row, each)
        if self.exchange.n_ranks > 1:
            own = [(found[place].size, found[place].unit) for place in sorted(chain(*alike.values()))]
            of_all = self.exchange.allreduce(own, lambda of_ranks: [*chain(*of_ranks)])
            for each, (size, unit) in zip(found, of_all, strict=True):
                each.size, each.unit = size, unit
        return found

    def _computed(self, node: Any, number: int, rows: NDArray[np.int64]) -> list[Made]:
        """The tasks of that number of these rows, which all begin at this node; the rows remember nothing of it."""
        hosted, fs = self.hosted, self.hosted.fs
        before, found = fs.samples[rows], list[Made]()
        kept = [self._remembered(row) for row in rows.tolist()] if self.remembers else []
        for start, batch in sorted(hosted.sent(node, number, rows).items()):
            for row in range(start, start + len(batch)):
                message = batch if len(batch) == 1 else batch.part(row - start, row - start + 1)
                samples = int(fs.samples[row] - before[len(found)])
                unit = 1.0
                if self.computing is not None and self.computing.per != "gradient":
                    unit = self.computing.units(fs[row : row + 1], np.array([samples])).item()
                found.append(Made(message.size, unit, message, samples, *(self._remembered(row) if self.remembers else ())))
        fs.samples[rows] = before
        for row, (memory, state) in zip(rows.tolist(), kept, strict=False):
            memories.put(hosted.workers, row, memory)
            hosted.states[row] = state
        return found

    def _remembered(self, row: int) -> Any:
        """Copies of a worker's memory, and of its compressor's."""
        return copy.deepcopy((memories.one(self.hosted.workers, row), self.hosted.states[row]))

    def _remember(self, each: Arrival) -> None:
        """Let a worker remember what it has computed, where that was computed before."""
        if each.worker in self.mine and each.made.message is not None:
            self._take_over(each.worker - self.mine.start, each.made)

    def _take_over(self, row: int, made: Made) -> None:
        self.hosted.fs.samples[row] += made.samples
        if self.remembers:
            memories.put(self.hosted.workers, row, made.memory)
            self.hosted.states[row] = made.state

    def _together(self) -> Batch:
        """The messages of the act of workers hosted here, by worker."""
        m, own = len(self.mine), [each for each in self._arrivals if each.worker in self.mine]
        if not own:
            return silent(m)
        rows = np.array([each.worker - self.mine.start for each in own])
        sent = together([each.made.message or silent(1) for each in own])
        lengths = np.bincount(rows, sent.lengths, m).astype(np.int64)
        refused = {int(rows[i]): error for i, error in sent.refused.items()}
        return replace(sent, ends=np.cumsum(lengths), refused=refused)


def _weighted(content: Any, weights: NDArray[np.float64]) -> Any:
    """Rows, each multiplied by its weight."""
    sparse = content.sparse()
    if sparse is None:
        return Dense(content.dense() * weights[:, None])
    return replace(sparse, values=sparse.values * np.repeat(weights, lengths_of(sparse.ends)))
