"""Counts the bits, coordinates and costs of a run's messages, and its seconds."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from mpi_compress.core.clock import stood_still
from mpi_compress.core.sums import added
from mpi_compress.messages.conventions import CONVENTIONS
from mpi_compress.messages.costs import Clocked, CostModel
from mpi_compress.messages.link import Link, Message
from mpi_compress.results.columns import named

Count = tuple[int, float, int]
"""Wire bits, paper bits and coordinates of a message."""


@dataclass
class Clock:
    """Seconds of the algorithm on this rank, cumulative."""

    wall: float = 0.0
    sends: float = 0.0  # in what workers send: gradients, compression and coding
    update: float = 0.0  # in the master's answer and in taking it over
    evaluate: float = 0.0
    counting: float = 0.0  # of these, in counts between two rounds, for which other ranks may wait


@dataclass
class Counters:
    """The counts and notes of rank 0, saved by a checkpoint as they are.

    Each counted column of `results.columns` has a field of its name: a number, or a list of one for each worker.
    """

    wire_bits_up: list[int]  # (n,) of each worker
    paper_bits_up: list[float]  # (n,)
    wire_bits_down: int = 0
    paper_bits_down: float = 0.0
    elements_up: int = 0  # coordinates
    cost_up: float = 0.0
    cost_down: float = 0.0
    model_seconds: float = 0.0  # of the model's clock, on every rank
    model_fixed: float = 0.0  # of these, computing and latency of the messages that were waited for
    model_bits: float = 0.0  # of these messages
    by_convention: dict[str, float] = field(default_factory=lambda: {c.column: 0.0 for c in CONVENTIONS.values()})  # bits up
    clock: Clock = field(default_factory=Clock)
    borrowed: float = 0.0  # seconds of the algorithm that evaluations spent, as of the last row
    on_its_way: float = 0.0  # seconds in which the slowest rank was in rounds that rank 0 had ended, as of the last row
    logged: int = -1  # the last round that has a row
    first_loss: float = math.inf  # of the first row
    last_loss: float = math.inf
    greatest_loss: float = -math.inf  # of all rows
    start_distance: float = math.nan  # ‖x0 − x*‖

    @property
    def trace(self) -> dict[str, float]:
        """The counted columns of a row of the trace."""
        return {name: added(v) if isinstance(v := getattr(self, name), list) else v for name in named("counter")}

    @property
    def by_model(self) -> dict[str, float]:
        """The columns of the model's clock in a row of the trace."""
        return {name: getattr(self, name) for name in named("model")}

    @property
    def workers(self) -> dict[str, list[float]]:
        """The counted columns of a row of /workers."""
        return {name: [*v] for name in named("counter") if isinstance(v := getattr(self, name), list)}

    @property
    def seconds(self) -> float:
        """Seconds of the algorithm."""
        return self.clock.wall + self.on_its_way + self.borrowed

    def see_slowest(self, wall: float) -> None:
        """Take note of the seconds that the slowest hosting rank has spent in rounds.

        Rank 0 ends a round once its answer is sent. If it evaluates then, or asks whether to save, the answer arrives while its
        clock stands; the other ranks' clocks run until they have heard it.
        """
        waited = self.clock.counting + stood_still()  # for rank 0, by clocks that do not count this
        self.on_its_way = max(self.on_its_way, wall - waited - self.clock.wall)

    def go_on_elsewhere(self) -> None:
        """On ranks other than 0, for which these counters of rank 0 were restored: its own clock goes on where it was."""
        self.clock.wall += self.on_its_way + self.clock.counting

    def add_up(self, counts: Iterable[Count], cost: CostModel) -> None:
        """Count every worker's message of a round, in worker order."""
        wire_up, paper_up = self.wire_bits_up, self.paper_bits_up
        elements_up, cost_up, before = self.elements_up, self.cost_up, None
        for i, count in enumerate(counts):
            wire, paper, elements = count
            if count != before:
                each, before = cost.of(wire, paper), count
            if isinstance(cost, Clocked):
                each = cost.at(self.model_seconds, i).of(wire, paper)
            wire_up[i] += wire
            paper_up[i] += paper
            elements_up += elements
            cost_up += each
        self.elements_up, self.cost_up = elements_up, cost_up

    def add_down(self, downlink: Link, downs: Sequence[Message], cost: CostModel) -> None:
        """Count the master's messages, one for each worker in worker order; or the one message to all of them, once for each."""
        n = len(self.wire_bits_up)
        to_each = n // len(downs)
        for i, down in enumerate(downs):
            wire, paper = down.wire_bits, _paper_bits(downlink, down)
            self.wire_bits_down += to_each * wire
            self.paper_bits_down += to_each * paper
            if isinstance(cost, Clocked):
                hearers = range(n) if to_each > 1 else (i,)
                self.cost_down += added(cost.at(self.model_seconds, j).of(wire, paper) for j in hearers)
            else:
                self.cost_down += to_each * cost.of(wire, paper)


def counts_of(uplink: Link, messages: Sequence[Message]) -> Iterator[Count]:
    """The counts of workers' messages; paper bits and coordinates are those of what was decoded."""
    before = None
    for message in messages:
        if message is not before:  # silent workers hosted together share one message
            content, before = message.content or uplink.unpack(message), message
            count = message.wire_bits, _paper_bits(uplink, message), content.elements
        yield count


def _paper_bits(link: Link, message: Message) -> float:
    """The paper's count for a message, from what was decoded; nothing for silence."""
    return 0.0 if message.is_silent else link.paper_bits(link.unpack(message))
