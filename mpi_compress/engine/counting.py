"""Counts the bits, coordinates and costs of a run's messages, and its seconds."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from operator import add

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.clock import stood_still
from mpi_compress.core.sums import added
from mpi_compress.exchange import Exchange
from mpi_compress.messages.conventions import CONVENTIONS
from mpi_compress.messages.costs import Clocked, CostModel
from mpi_compress.messages.link import Link, Message
from mpi_compress.problem.objective import Objective
from mpi_compress.results.columns import COLUMNS, named

_COUNTED = [(c, *c.name.rpartition("_")[::2]) for c in COLUMNS if c.since == "counter"]  # with its field of `Counts`, and the way
_DTYPES = {name: c.dtype for c, name, _ in _COUNTED}


@dataclass(frozen=True)
class Counts:
    """What is counted of messages, or of all messages that senders have sent: each field has one number a sender. A field is the
    column `<name>_up` of the trace, `<name>_down`, or both: those that `results.columns` has a row for."""

    wire_bits: Sequence[int]
    paper_bits: Sequence[float]
    elements: Sequence[int]  # coordinates

    @classmethod
    def of(cls, messages: Sequence[Message], link: Link) -> "Counts":
        """The counts of each message, read by its link."""
        once = {id(m): m for m in messages}
        if len(once) < len(messages):  # silent workers hosted together share one message
            rows = dict(zip(once, zip(*vars(cls.of([*once.values()], link)).values(), strict=True), strict=True))
            return cls(*zip(*[rows[id(m)] for m in messages], strict=True))
        read = [m.content or link.unpack(m) for m in messages]
        return cls(
            wire_bits=[m.wire_bits for m in messages],
            paper_bits=[0.0 if m.is_silent else link.paper_bits(c) for m, c in zip(messages, read, strict=True)],
            elements=[c.elements for c in read],
        )

    @classmethod
    def zeros(cls, senders: int) -> "Counts":
        """Those to which others can be added."""
        return cls(*(np.zeros(senders, _DTYPES.get(f.name, "float64")).tolist() for f in fields(cls)))

    def add(self, more: "Counts") -> None:
        """Add what the same senders have sent since."""
        for total, each in zip(vars(self).values(), vars(more).values(), strict=True):
            total[:] = map(add, total, each)


@dataclass
class Clock:
    """Seconds of the algorithm on this rank, cumulative."""

    wall: float = 0.0
    sends: float = 0.0  # in what workers send: gradients, compression and coding
    update: float = 0.0  # in the master's answer and in taking it over
    evaluate: float = 0.0
    counting: float = 0.0  # the part of `evaluate` in counts between two rounds, for which other ranks may wait


@dataclass
class Counters:
    """The counts and notes of rank 0, saved by a checkpoint as they are."""

    up: Counts  # (n,) the messages of each worker
    down: Counts  # (1,) the master's, each as often as it is heard
    cost_up: float = 0.0
    cost_down: float = 0.0
    model_seconds: float = 0.0  # by the model's clock, on every rank
    model_fixed: float = 0.0  # the part of them that is computing and latency of the messages that were waited for
    model_bits: float = 0.0  # bits of these messages
    by_convention: dict[str, float] = field(default_factory=lambda: {c.column: 0.0 for c in CONVENTIONS.values()})  # bits up
    clock: Clock = field(default_factory=Clock)
    borrowed: float = 0.0  # seconds of the algorithm that evaluations had spent when the last row was made
    on_its_way: float = 0.0  # seconds up to the last row in which the slowest rank was in rounds that rank 0 had ended
    logged: int = -1  # the last round that has a row
    first_loss: float = math.inf  # of the first row
    last_loss: float = math.inf
    greatest_loss: float = -math.inf  # of all rows
    first_row: dict[str, float] = field(default_factory=dict)  # columns of /trace and /timing
    last_row: dict[str, float] = field(default_factory=dict)
    lyapunov: float = math.nan  # V of the last row, where the method states it
    lyapunov_bound: float = math.nan  # and the theorem's line there
    of_stops: dict[str, dict[str, float]] = field(default_factory=dict)  # what stops of one's own have noted, by their names

    @classmethod
    def begun(cls, n: int) -> "Counters":
        """Those of n workers before the first round."""
        return cls(Counts.zeros(n), Counts.zeros(1))

    @property
    def wire_bits_up(self) -> int:
        return sum(self.up.wire_bits)

    @property
    def trace(self) -> dict[str, float]:
        """The counted columns of a row of the trace."""
        ways = {"up": vars(self.up), "down": vars(self.down)}
        return {c.name: added(ways[way][name]) if name in ways[way] else getattr(self, c.name) for c, name, way in _COUNTED}

    @property
    def workers(self) -> dict[str, list[float]]:
        """The counted columns of a row of /workers."""
        return {c.name: [*getattr(getattr(self, way), name)] for c, name, way in _COUNTED if c.workers}

    @property
    def by_model(self) -> dict[str, float]:
        """The columns of the model's clock in a row of the trace."""
        return {name: getattr(self, name) for name in named("model")}

    @property
    def seconds(self) -> float:
        """Seconds of the algorithm."""
        return self.clock.wall + self.on_its_way + self.borrowed

    def see_slowest(self, wall: float) -> None:
        """Take note of the seconds that the slowest hosting rank has spent in rounds. Rank 0 ends a round once its answer is sent.
        If it evaluates then, or asks whether to save, the answer arrives while its clock stands; the other ranks' clocks run until
        they have heard it."""
        waited = self.clock.counting + stood_still()  # for rank 0, by clocks that do not count this
        self.on_its_way = max(self.on_its_way, wall - waited - self.clock.wall)

    def go_on_elsewhere(self) -> None:
        """Let the clock of another rank go on where it was, from these counters of rank 0."""
        self.clock.wall += self.on_its_way + self.clock.counting

    def add_up(self, counts: Counts, cost: CostModel) -> None:
        """Count every worker's message of a round, in worker order."""
        self.up.add(counts)
        before, clocked = None, cost if isinstance(cost, Clocked) else None
        for i, bits in enumerate(zip(counts.wire_bits, counts.paper_bits, strict=True)):
            if clocked:
                each = clocked.at(self.model_seconds, i).of(*bits)
            elif bits != before:
                each, before = cost.of(*bits), bits
            self.cost_up += each

    def add_down(self, downlink: Link, downs: Sequence[Message], cost: CostModel) -> None:
        """Count the master's messages, one for each worker in worker order; or the one message to all of them, once for each."""
        n, counts = len(self.up.wire_bits), Counts.of(downs, downlink)
        to_each = n // len(downs)
        for total, column in zip(vars(self.down).values(), vars(counts).values(), strict=True):
            for each in column:
                total[0] += to_each * each
        for i, bits in enumerate(zip(counts.wire_bits, counts.paper_bits, strict=True)):
            if isinstance(cost, Clocked):
                hearers = range(n) if to_each > 1 else (i,)
                self.cost_down += added(cost.at(self.model_seconds, j).of(*bits) for j in hearers)
            else:
                self.cost_down += to_each * cost.of(*bits)


class ModelClock:
    """Moves the clock in `Counters.model_seconds` on, on all ranks together: what rounds would take on the cost's links.

    A round takes the slowest worker's gradient and message up, and then the slowest message down. The master's own time is 0. The
    links are those between the master and each worker: whatever exchange the run has, its clock is the same, so that methods that
    look at it send the same bytes on every layout.

    Args:
        objectives: f_i of the workers hosted here, whose samples say what a worker computed. A sample has the mean number of
            nonzeros of its worker's rows.
    """

    def __init__(self, cost: Clocked, exchange: Exchange, objectives: Mapping[int, Objective]):
        self._cost, self._exchange, self._objectives = cost, exchange, objectives
        self._nonzeros = {i: f.rows.nonzeros / max(1, len(f.rows)) for i, f in objectives.items()}
        self._before: dict[int, int] = {}

    def begin(self) -> None:
        """A round begins: what workers compute from now on is its gradients."""
        self._before = {i: f.samples for i, f in self._objectives.items()}

    def end(self, c: Counters, ups: Sequence[int], downs: Sequence[Message]) -> None:
        """The round is over; at rank 0 ups are the wire bits of every worker's message, downs one message to each or to all."""
        computed = _Numbers()
        if self._cost.computing(1.0) > 0:
            self._exchange.collect(self._reports(), computed)
        if self._exchange.is_root:
            self._add(c, computed or [0.0] * len(ups), ups, downs)
        c.model_seconds = self._exchange.agree(c.model_seconds)

    def _reports(self) -> Iterator[NDArray[np.float64]]:
        for i, f in self._objectives.items():
            yield np.array([self._cost.computing((f.samples - self._before[i]) * self._nonzeros[i])])

    def _add(self, c: Counters, computed: Sequence[float], ups: Sequence[int], downs: Sequence[Message]) -> None:
        """Add a round to the clock, and what the messages that were waited for say of it."""
        begun, trip = c.model_seconds, self._cost.arrival
        waited = [trip(bits, begun + seconds, i) for i, (bits, seconds) in enumerate(zip(ups, computed, strict=True))]
        slowest = max(range(len(ups)), key=lambda i: waited[i][0])
        arrived, latency = waited[slowest]
        c.model_fixed += computed[slowest] + latency
        c.model_bits += ups[slowest]
        each = downs if len(downs) == len(ups) else [*downs] * len(ups)
        heard = [trip(m.wire_bits, arrived, i) for i, m in enumerate(each)]
        last = max(range(len(each)), key=lambda i: heard[i][0])
        c.model_seconds, latency = heard[last]
        c.model_fixed += latency
        c.model_bits += each[last].wire_bits

class _Numbers(list[float]):
    def add(self, report: NDArray) -> None:
        self.append(float(report[0]))
