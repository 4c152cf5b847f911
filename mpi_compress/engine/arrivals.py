"""The clock of a run whose workers or links take time: when messages arrive, and whose the master waits for."""

import copy
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.algorithms import Algorithm, memories
from mpi_compress.algorithms.hosted import HostedWorkers
from mpi_compress.core.streams import Role, Rounds
from mpi_compress.engine.counting import Counters
from mpi_compress.engine.observer import Observer
from mpi_compress.messages.batch import LENGTH_BYTES, Batch
from mpi_compress.messages.costs.links import Links
from mpi_compress.messages.link import Arrived, Link, arrived
from mpi_compress.problem.computing import NS
from mpi_compress.results.columns import named
from mpi_compress.saving.checkpoint import States

Event = tuple[int, int]
"""A nanosecond and a worker: ties fall to the lower worker."""


@dataclass
class Tasks:
    """What the workers do in a round."""

    begun: list[int]  # (n,) the nanosecond in which each begins
    took: list[int]  # (n,) for how long each computes
    bits: list[int]  # (n,) of each message up; 0: it says nothing, or takes no time
    arrived: dict[int, Event] = field(default_factory=dict)  # when the messages of those that have computed arrive
    taken: Sequence[int] = ()  # the workers whose messages the master takes, in worker order

    def computed(self, i: int) -> int:
        """The nanosecond in which a worker has computed."""
        return self.begun[i] + self.took[i]


def decoded(batch: Batch, link: Link) -> Arrived | None:
    """What messages decode to; None: one of them is refused, or not finite."""
    if batch.refused:
        return None
    found = arrived(link, batch)
    return found if np.all(found.content.is_finite()) else None


def travelled(links: Links | None, bits: int, ns: int, i: int) -> tuple[int, float]:
    """When a message that worker i sends or is sent at ns has arrived, and its latency in seconds."""
    if links is None or not bits:
        return ns, 0.0
    second, latency = links.arrival(bits, ns / NS, i)
    return max(ns, round(second * NS)), latency


class AtOnce:
    """Rounds of a run without a clock: the messages of all that take part arrive at once."""

    def __init__(self, observer: Observer, hosted: HostedWorkers):
        self.observer, self.hosted, self.exchange = observer, hosted, observer.exchange

    def messages(self, node: Any, k: int) -> Batch:
        """The messages of round k of the workers hosted here."""
        return self.hosted.messages(node, k)

    def arrived(self, ups: Batch, link: Link) -> Arrived | None:
        """What the master takes of the messages of all workers; None: one of them is refused, or not finite."""
        return decoded(ups, link)

    def end(self, s: States, uplink: Link, ups: Batch, downlink: Link, downs: Batch) -> None:
        """Round s.k is over: count it. At rank 0 ups are all messages up, and downs one to each worker or one to all."""
        self.observer.count(uplink, ups, downlink, downs)


class Arrivals(AtOnce):
    """Moves the clock in `Counters.model_ns` on, on all ranks together. The master's own time is 0.

    Where the master waits for all that take part, they begin together; the round takes the slowest one's computing and message up,
    and then the slowest message down to them. Where it waits for the first m of n, the round ends as the m-th message arrives. Each
    worker begins as soon as it has heard the answer; whatever else it was doing is undone. The links are those between the master
    and each worker: whatever exchange the run has, its clock is the same.
    """

    def __init__(self, observer: Observer, hosted: HostedWorkers):
        super().__init__(observer, hosted)
        self.algorithm: Algorithm = hosted.algorithm
        algorithm = self.algorithm
        observer.timed = named("model", "waited")
        self.links, self.computing = algorithm.setting.cost.clock, algorithm.setting.computing
        self.links_down = algorithm.setting.cost.of_down.clock
        self.known = self.computing is None or self.computing.per == "gradient"  # beforehand, how long each worker computes
        self.fs, self.n = observer.objectives, self.exchange.n
        self.m = algorithm.setting.r if algorithm.setting.rule else self.n
        self._before = self.fs.samples
        self._tasks: Tasks | None = None  # of the round, where the first m are waited for

    def messages(self, node: Any, k: int) -> Batch:
        """The messages of round k of the workers hosted here."""
        self._before, hosted, mine = self.fs.samples.copy(), self.hosted, self.exchange.mine
        if self.m >= self.n:
            self._awake = hosted.taking_part(node, k).tolist()[: self.n]  # in a warm-up of one worker
            return hosted.messages(node, k)
        self._tasks, sent = self._first(node, k, self.n if self.algorithm.needs_all(node, k) else self.m)
        rows = [i - mine.start for i in self._tasks.taken if i in mine]
        return hosted.joined({row: sent[row] for row in rows}, np.array(rows, dtype=np.int64))

    def end(self, s: States, uplink: Link, ups: Batch, downlink: Link, downs: Batch) -> None:
        super().end(s, uplink, ups, downlink, downs)
        c = self.observer.counters
        if self._tasks is not None:
            c.stopped += self.n - len(self._tasks.taken)
            c.model_ns = self._count(c, self._tasks)
            if self.links is not None:
                c.model_down[:] = self.exchange.agree(self._bits(np.resize(downs.lengths, self.n)))
            return
        units = np.ones((self.n, 2)) if self.known else self._reported({})
        if self.exchange.is_root:
            tasks = Tasks([c.model_ns] * self.n, self._took(s.k, units), self._bits(ups.lengths), taken=self._awake)
            tasks.arrived = {i: self._arrival(tasks, i) for i in self._awake}
            acted, down = self._count(c, tasks), self._bits(np.resize(downs.lengths, self.n))
            c.model_ns, last = _slowest((travelled(self.links_down, down[i], acted, i)[0], i) for i in self._awake)
            c.model_fixed += travelled(self.links_down, down[last], acted, last)[1]
            c.model_bits += down[last]
        c.model_ns = self.exchange.agree(c.model_ns)

    def _first(self, node: Any, k: int, m: int) -> tuple[Tasks, dict[int, Batch]]:
        """Have workers compute until it is known whose messages are the first m, and undo what the others did; the messages of the
        rows hosted here. Nobody computes who would not have before the m-th message arrives, if that is known beforehand."""
        fs, hosted, c, mine = self.fs, self.hosted, self.observer.counters, self.exchange.mine
        begun = [travelled(self.links_down, bits, c.model_ns, i)[0] for i, bits in enumerate(c.model_down.tolist())]
        tasks = Tasks(begun, self._took(k, np.ones((self.n, 2))), [0] * self.n)
        order, asks = sorted(range(self.n), key=tasks.computed), self.links is not None or not self.known
        todo, sent, kept, last = order[:m] if self.known else order, dict[int, Batch](), dict[int, Any](), (0, 0)
        while todo:
            rows = np.array(sorted(i - mine.start for i in todo if i in mine), dtype=np.int64)
            if asks:
                kept |= {row: copy.deepcopy((memories.one(hosted.workers, row), hosted.states[row])) for row in rows.tolist()}
            parts = hosted.sent(node, k, rows).items()
            sent |= {start + i: batch.part(i, i + 1) for start, batch in parts for i in range(len(batch))}
            if asks:
                reported = self._reported(sent)
                tasks.took, tasks.bits = self._took(k, reported), reported[:, 1].astype(int).tolist()
            tasks.arrived |= {i: self._arrival(tasks, i) for i in todo}
            last = sorted(tasks.arrived.values())[m - 1]
            more = bisect_left(order, last, key=lambda i: (tasks.computed(i), i)) if self.known else 0
            todo = [i for i in order[:more] if i not in tasks.arrived]
        tasks.taken = sorted(i for i, event in tasks.arrived.items() if event <= last)
        for row, (memory, state) in kept.items():
            if (i := row + mine.start) not in tasks.taken:
                memories.put(hosted.workers, row, memory)
                hosted.states[row] = state
                if (tasks.computed(i), i) > last:
                    fs.samples[row] = self._before[row]
        return tasks, sent

    def _reported(self, sent: Mapping[int, Batch]) -> NDArray[np.float64]:
        """(n, 2), on every rank: what is timed of each worker's task, and the bits of its message, which its host has."""
        units = np.ones(len(self.fs)) if self.computing is None else self.computing.units(self.fs, self.fs.samples - self._before)
        bits = self._bits(np.array([sent[row].size if row in sent else 0 for row in range(len(self.fs))], dtype=np.int64))
        report: list[Any] = [[np.array([units, bits]).T]] if bits else []
        return self.exchange.agree(np.concatenate([np.zeros((0, 2)), *(each for (each,) in self.exchange.collect(report))]))

    def _took(self, k: int, units: NDArray[np.float64]) -> list[int]:
        """(n,) the nanoseconds in which each worker computes its task of round k."""
        if self.computing is None:
            return [0] * self.n
        return self.computing.nanoseconds(Rounds(k, self.hosted.streams, Role.TIME, np.arange(self.n)), units[:, 0])

    def _bits(self, lengths: NDArray[np.int64]) -> list[int]:
        """The wire bits of messages; 0 of one that says nothing, or takes no time."""
        return np.where((lengths > 0) & (self.links is not None), 8 * (LENGTH_BYTES + lengths), 0).tolist()

    def _arrival(self, tasks: Tasks, i: int) -> Event:
        return travelled(self.links, tasks.bits[i], tasks.computed(i), i)[0], i

    def _count(self, c: Counters, tasks: Tasks) -> int:
        """Count the tasks of a round, and what the message that was waited for says of it; the nanosecond in which it arrived."""
        events = [tasks.arrived[i] for i in tasks.taken]
        end, (ns, last) = max(events), _slowest(events)
        c.arrivals += len(events)
        c.gradients += sum((tasks.computed(i), i) <= end for i in tasks.arrived)
        c.model_used += sum(tasks.took[i] for i in tasks.taken) / (NS * self.n)
        heard, sent = c.model_down[last].item(), tasks.bits[last]
        latency_up = travelled(self.links, sent, tasks.computed(last), last)[1]
        latency_down = travelled(self.links_down, heard, c.model_ns, last)[1]
        c.model_fixed += tasks.took[last] / NS + (latency_up + latency_down)
        c.model_bits += sent + heard
        return ns


def _slowest(events: Iterable[Event]) -> Event:
    """The last one; of those at the same time that of the lowest worker."""
    return max(events, key=lambda event: (event[0], -event[1]))
