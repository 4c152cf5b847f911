"""Counts the bits, coordinates and costs of a run's messages, and its seconds."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.clock import stood_still
from mpi_compress.messages.batch import LENGTH_BYTES, Batch
from mpi_compress.messages.conventions import CONVENTIONS
from mpi_compress.messages.costs import CostModel
from mpi_compress.messages.link import Link
from mpi_compress.problem.computing import NS
from mpi_compress.results.columns import COLUMNS

_COUNTED = [(c, *c.name.rpartition("_")[::2]) for c in COLUMNS if c.since == "counter"]  # with its field of `Counts`, and the way
_DTYPES = {name: c.dtype for c, name, _ in _COUNTED}


@dataclass(frozen=True)
class Counts:
    """What is counted of messages, or of all messages that senders have sent: each field has one number a sender. A field is the
    column `<name>_up` of the trace, `<name>_down`, or both: those that `results.columns` has a row for."""

    wire_bits: NDArray[np.int64]
    paper_bits: NDArray[np.float64]
    elements: NDArray[np.int64]  # coordinates

    @classmethod
    def of(cls, batch: Batch, link: Link) -> "Counts":
        """The counts of each message, read by its link."""
        lengths, content = batch.lengths, link.unpack(batch)
        speaks = slice(None) if lengths.all() else lengths > 0
        counts = cls(8 * (LENGTH_BYTES + lengths), np.zeros(lengths.size), np.zeros(lengths.size, dtype=np.int64))
        counts.paper_bits[speaks], counts.elements[speaks] = link.paper_bits(content), content.elements
        return counts

    @classmethod
    def zeros(cls, senders: int) -> "Counts":
        """Those to which others can be added."""
        return cls(*(np.zeros(senders, _DTYPES.get(f.name, "float64")) for f in fields(cls)))

    def add(self, more: "Counts", times: int = 1) -> None:
        """Add what the same senders have sent since, one message after another where these are fewer; each so many times."""
        for total, each in zip(vars(self).values(), vars(more).values(), strict=True):
            if total.size == each.size:
                total += times * each
            else:
                total[0] = in_order(times * each, total[0])


def in_order(numbers: Any, start: Any = 0) -> Any:
    """((start + a) + b) + …, each sum rounded."""
    return np.concatenate([[start], numbers]).cumsum()[-1].item()


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
    model_ns: int = 0  # nanoseconds by the model's clock, on every rank
    model_fixed: float = 0.0  # the part of them that is computing and latency of the messages that were waited for
    model_bits: float = 0.0  # bits of these messages
    model_used: float = 0.0  # seconds in which a worker, in the mean, computed what was used
    model_down: Any = field(default_factory=lambda: np.zeros(0))  # (n,) bits that each worker hears before it begins, on every rank
    arrivals: int = 0  # tasks whose messages the master took
    gradients: int = 0  # tasks that were computed
    stopped: int = 0  # tasks that were not taken
    ignored: int = 0  # messages that were too old
    staleness_sum: int = 0  # of the messages that the master took
    staleness_max: int = 0
    arrivals_of: Any = field(default_factory=lambda: np.zeros(0))  # (n,) messages of each worker that the master took
    busy_of: Any = field(default_factory=lambda: np.zeros(0))  # (n,) seconds in which each computed them
    by_convention: dict[str, float] = field(default_factory=lambda: {c.column: 0.0 for c in CONVENTIONS.values()})  # bits up
    clock: Clock = field(default_factory=Clock)
    borrowed: float = 0.0  # seconds of the algorithm that evaluations had spent when the last row was made
    on_its_way: float = 0.0  # seconds up to the last row in which the slowest rank was in rounds that rank 0 had ended
    logged: int = -1  # the last round that has a row
    logged_ns: int = 0  # and the model's clock in it
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
        return cls(Counts.zeros(n), Counts.zeros(1), model_down=np.zeros(n), arrivals_of=np.zeros(n), busy_of=np.zeros(n))

    @property
    def wire_bits_up(self) -> int:
        return int(self.up.wire_bits.sum())

    @property
    def trace(self) -> dict[str, float]:
        """The counted columns of a row of the trace."""
        ways = {"up": vars(self.up), "down": vars(self.down)}
        return {c.name: in_order(ways[way][name]) if name in ways[way] else getattr(self, c.name) for c, name, way in _COUNTED}

    @property
    def workers(self) -> dict[str, NDArray]:
        """The counted columns of a row of /workers, as they are now."""
        return {c.name: getattr(getattr(self, way), name).copy() for c, name, way in _COUNTED if c.workers}

    @property
    def model_seconds(self) -> float:
        """The seconds of the model's clock."""
        return self.model_ns / NS

    @property
    def busy(self) -> float:
        """The share of the workers' seconds in which they computed what was used."""
        return self.model_used / self.model_seconds if self.model_ns else 0.0

    @property
    def staleness(self) -> float:
        """The mean staleness of the messages that the master took."""
        return self.staleness_sum / self.arrivals if self.arrivals else 0.0

    @property
    def busy_seconds(self) -> float:
        """The seconds in which workers computed what was used."""
        return in_order(self.busy_of)

    @property
    def of_queue(self) -> dict[str, NDArray]:
        """The columns of a queue of arrivals in a row of /workers, as they are now."""
        return {"arrivals": self.arrivals_of.copy(), "busy_seconds": self.busy_of.copy()}

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
        self.cost_up = in_order(self._costs(counts, cost), self.cost_up)

    def add_down(self, downlink: Link, downs: Batch, cost: CostModel) -> None:
        """Count the master's messages, one for each worker in worker order; or the one message to all of them, once for each."""
        n, counts = len(self.up.wire_bits), Counts.of(downs, downlink)
        to_each = n // len(downs)
        self.down.add(counts, to_each)
        costs: Any = self._costs(counts, cost.of_down, to_each)
        self.cost_down = in_order([in_order(costs)] if cost.clock and to_each > 1 else costs, self.cost_down)

    def add_tasks(self, up: Counts, who: Sequence[int], down: Counts, to: Sequence[int], cost: CostModel) -> None:
        """Count messages of the workers `who`, and what the workers `to` have heard."""
        for total, each in zip(vars(self.up).values(), vars(up).values(), strict=True):
            np.add.at(total, who, each)
        self.down.add(down)
        self.cost_up = in_order(self._costs(up, cost, who=who), self.cost_up)
        self.cost_down = in_order(self._costs(down, cost.of_down, who=to), self.cost_down)

    def _costs(self, counts: Counts, cost: CostModel, to_each: int = 1, who: Iterable[int] | None = None) -> Any:
        """The cost of each message, of the workers `who` or of all; of one to all workers that of each worker's, where links
        differ."""
        if cost.clock:
            bits = [*zip(counts.wire_bits.tolist(), counts.paper_bits.tolist(), strict=True)] * to_each
            each_worker = range(len(bits)) if who is None else who
            return [cost.clock.at(self.model_seconds, i).of(*each) for i, each in zip(each_worker, bits, strict=True)]
        each: Any = counts.wire_bits.astype(np.float64), counts.paper_bits
        return to_each * np.asarray(cost.of(*each), dtype=np.float64)
