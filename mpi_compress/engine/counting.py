"""What the messages of a run come to: bits, coordinates and costs; and its clock."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from mpi_compress.messages.costs import CostModel
from mpi_compress.messages.link import Link, Message


@dataclass
class Clock:
    """Seconds of the algorithm on this rank, cumulative."""

    wall: float = 0.0
    sends: float = 0.0  # in what workers send: gradients, compression and coding
    update: float = 0.0  # in the master's answer and in hearing it
    evaluate: float = 0.0


@dataclass
class Counters:
    """What rank 0 has counted and noted so far. A checkpoint saves it as it is, and every field is part of its schema."""

    wire_up: list[int]  # (n,) bits of each worker
    paper_up: list[float]  # (n,)
    elements: int = 0  # coordinates sent up
    wire_down: int = 0
    paper_down: float = 0.0
    cost_up: float = 0.0
    cost_down: float = 0.0
    clock: Clock = field(default_factory=Clock)
    borrowed: float = 0.0  # seconds of the algorithm that evaluations spent, as of the last row
    logged: int = -1  # the last round that has a row
    first_loss: float = math.inf  # of the first row
    last_loss: float = math.inf
    start_distance: float = math.nan  # ‖x0 − x*‖

    @classmethod
    def of(cls, n: int) -> "Counters":
        """Of a run of n workers that has not begun."""
        return cls([0] * n, [0.0] * n)

    @property
    def seconds(self) -> float:
        """Seconds of the algorithm."""
        return self.clock.wall + self.borrowed

    def add_up(self, uplink: Link, arrived: Sequence[Message], cost: CostModel) -> None:
        """Count every worker's message of a round, in worker order; paper bits are those of what was decoded."""
        wire_up, paper_up, cost_up, elements_up, before = self.wire_up, self.paper_up, self.cost_up, self.elements, None
        for i, message in enumerate(arrived):
            if message is not before:  # silent workers hosted together share one message
                content = message.content or uplink.unpack(message)
                wire, paper, elements = message.wire_bits, uplink.paper_bits(content), content.elements
                each, before = cost.of(wire, paper), message
            wire_up[i] += wire
            paper_up[i] += paper
            cost_up += each
            elements_up += elements
        self.cost_up, self.elements = cost_up, elements_up

    def add_down(self, downlink: Link, down: Message, cost: CostModel) -> None:
        """Count the master's message, once for each worker."""
        n, paper = len(self.wire_up), downlink.paper_bits(downlink.unpack(down))
        self.wire_down += n * down.wire_bits
        self.paper_down += n * paper
        self.cost_down += n * cost.of(down.wire_bits, paper)
