"""A model of the seconds and bits of a round with n workers, from the costs of its parts and of a link.

Every rank has a core of its own and the same link to a switch; a message of P bits between two ranks takes c0 + c1·P. What goes
in and out of one rank goes through one port, one message after another. The parts of a round follow one another; nothing overlaps.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks._parts import LinkCosts, PartCosts, PartTimer
from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import count_text
from mpi_compress.job.runs import RunSpec
from mpi_compress.messages.costs.base import files_of

Way = Literal["star", "allgather"]
WAYS: tuple[Way, ...] = ("star", "allgather")
PARTS = ("gradient", "packing", "fold", "exchange")
MOST_WORKERS, MOST_PANELS = 1_000_000, 12


@dataclass(frozen=True)
class RoundTimes:
    """A round of n workers: seconds of its parts, one after another, and bits on the wire as a run counts them."""

    n: int
    gradient: float
    packing: float
    fold: float
    exchange: float
    bits_up: float
    bits_down: float

    @property
    def seconds(self) -> float:
        return self.gradient + self.packing + self.fold + self.exchange

    @property
    def largest(self) -> str:
        """The part that takes most."""
        return max(PARTS, key=lambda part: getattr(self, part))


Modelled = Mapping[str, Mapping[Way, Sequence[RoundTimes]]]
"""Rounds by label of the run, and by way."""


_HOSTS = {"dedicated": False, "worker": True}


@dataclass(frozen=True)
class Scale:
    """The model of one method: the costs of its parts, the link, and the ranks."""

    costs: PartCosts
    link: LinkCosts
    ranks: int | None = None  # the master's among them; 1: one process; None: one for each worker, and one for a dedicated master
    master_hosts: bool = False  # True: the master's rank hosts workers too
    shard: int | None = None  # samples of each worker; None: N/n

    @classmethod
    def of(cls, spec: RunSpec, timer: PartTimer, link: str | None, ranks: int | None, shard: int | None) -> "Scale":
        """The model of a run, whose parts are timed; its link is that of a file, else of [cost], else takes no time."""
        file = link or (files_of(spec.cost)[0] if spec.cost.name == "table" else None)
        costs = LinkCosts() if file is None else LinkCosts.of(Path(file))
        return cls(timer.of(spec), costs, ranks, _HOSTS[spec.workers.master], shard)

    def round(self, way: Way, n: int) -> RoundTimes:
        """A round of n workers."""
        costs, link = self.costs, self.link
        beside = way == "allgather" or self.ranks == 1 or self.master_hosts  # the master's rank hosts workers
        if beside is None:
            beside = self.ranks is not None and -(-n // self.ranks) < -(-n // (self.ranks - 1))
        hosts = n if self.ranks is None else min(n, max(1, self.ranks if beside else self.ranks - 1))
        senders, each = hosts - beside, math.ceil(n / hosts)
        nonzeros = costs.samples(self.shard or costs.n_samples / n) * costs.nonzeros
        up, down = n * (costs.share * costs.bits_up + (1.0 - costs.share) * 32.0), costs.bits_down(costs.share * n)
        fold, exchange = costs.fold(costs.share * n), link.port(senders, up * senders / hosts, down)
        if way == "allgather":  # lengths, then messages: every rank gets those of all others
            exchange, down = 2.0 * math.ceil(math.log2(hosts)) * link.c0 + link.c1 * up * (hosts - 1) / hosts, 0.0
        gradient = each * (costs.nonzero * nonzeros + costs.worker)
        return RoundTimes(n, gradient, costs.packing(each), fold, exchange, up, n * down)

    def statements(self, way: Way, ns: Sequence[int]) -> list[str]:
        """From how many workers on the exchange and the fold take more than the workers' own part, and which n is quickest."""
        found = []
        for part in ("exchange", "fold"):
            n = self._from(part, way, ns)
            many = "" if n is None else count_text(n, "worker")
            where = "never" if n is None else f"from {many} on" if n > ns[0] else f"at {many} already"
            found.append(f"{part} above gradient and packing: {where}")
        quickest = min((self.round(way, n) for n in ns), key=lambda r: r.seconds)
        return [*found, f"quickest round: {count_text(quickest.n, 'worker')}, {time_text(quickest.seconds)}"]

    def _from(self, part: str, way: Way, ns: Sequence[int]) -> int | None:
        """The least n of the range from which on a part takes more than gradient and packing; None if that is so nowhere."""

        def saturates(n: int) -> bool:
            r = self.round(way, n)
            return bool(getattr(r, part) > r.gradient + r.packing)

        first = next((i for i, n in enumerate(ns) if saturates(n)), None)
        if not first:
            return None if first is None else ns[0]
        between = range(ns[first - 1] + 1, ns[first])
        return between.start + bisect_left(between, True, key=saturates)

    def assumed(self, way: Way) -> str:
        """What a table assumes."""
        each = "n" if self.master_hosts or way == "allgather" else "n + 1"
        ranks = "one process" if self.ranks == 1 else f"{self.ranks or each} ranks"
        shard = f"{self.shard} samples" if self.shard else "N/n samples"
        known = f"{time_text(self.link.c0)} a message, {time_text(8e6 * self.link.c1)} a megabyte"
        known = known if self.link.c1 or self.link.c0 else "no --link: messages take no time"
        return f"{way}, {ranks}, {shard} each; {known}"


def way_of(spec: RunSpec) -> Way:
    """How a run's messages meet."""
    return "allgather" if spec.workers.exchange == "allgather" else "star"


def workers_of(text: str) -> list[int]:
    """The numbers of workers that "10:10000", or "1000", asks for: both, and 1, 2 and 5 times powers of ten between.

    UserError: it is neither, or asks for more than `MOST_WORKERS`.
    """
    ends = [int(end) if end.isdecimal() and len(end) < 20 else 0 for end in text.split(":")]
    if not 1 <= ends[0] <= ends[-1] <= MOST_WORKERS or len(ends) > 2:
        raise UserError(f"{text}: it should be numbers of workers, such as 10:10000, up to {MOST_WORKERS}")
    round_ones = (digit * 10**i for i in range(7) for digit in (1, 2, 5))
    return sorted({*ends, *(m for m in round_ones if ends[0] < m < ends[-1])})


def time_text(seconds: float) -> str:
    """Three digits and a unit."""
    for unit, length in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= 0.9995 * length:
            return f"{digits(seconds / length)} {unit}"
    return "0" if seconds < 5e-10 else f"{digits(1e6 * seconds)} µs"


def digits(value: float) -> str:
    return f"{value:.0f}" if value >= 99.95 or value == 0 else f"{value:.3g}"
