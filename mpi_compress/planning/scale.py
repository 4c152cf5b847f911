"""A model of scale: the seconds and bits of a round with n workers, from the costs of its parts and of a link.

Every rank has a core of its own and the same link to a switch; a message of P bits between two ranks takes c0 + c1·P. What
goes in and out of one rank goes through one port, one message after another. The parts of a round follow one another; nothing
overlaps.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from mpi_compress.core.errors import UserError
from mpi_compress.planning.part_costs import PartCosts
from mpi_compress.planning.scale_link import LinkCosts
from mpi_compress.planning.scale_tree import TreeOfCosts

Way = Literal["star", "allgather", "tree"]
WAYS: tuple[Way, ...] = ("star", "allgather", "tree")
PARTS = ("gradient", "packing", "fold", "exchange")
MOST = 1_000_000  # workers that are modelled


@dataclass(frozen=True)
class Hosting:
    """Which ranks there are, and how many rows a worker has."""

    ranks: int | None = None  # the master's among them; 1: one process; None: one for each worker, and one for the master
    master_hosts: bool = False  # True: the master's rank hosts workers too
    shard: int | None = None  # rows of each worker; None: N/n

    def hosts(self, n: int) -> int:
        """The ranks that host workers."""
        if self.ranks is None:
            return n
        return min(n, max(1, self.ranks if self.master_hosts else self.ranks - 1))

    def senders(self, n: int) -> int:
        """The ranks that host workers and are not the master's."""
        return 0 if self.ranks == 1 else self.hosts(n) - self.master_hosts

    def rows(self, n: int, n_samples: int) -> float:
        return n_samples / n if self.shard is None else float(self.shard)


@dataclass(frozen=True)
class ModelledRound:
    """A round of n workers: seconds of its parts, one after another, and bits on the wire as a run counts them."""

    n: int
    gradient: float
    packing: float
    fold: float
    exchange: float
    bits_up: float
    bits_down: float
    fan_in: int = 0  # how many ranks of a tree send their sums to one, at most

    @property
    def seconds(self) -> float:
        return self.gradient + self.packing + self.fold + self.exchange

    @property
    def largest(self) -> str:
        """The part that takes most."""
        return max(PARTS, key=lambda part: getattr(self, part))


def modelled(costs: PartCosts, link: LinkCosts, hosting: Hosting, way: Way, n: int) -> ModelledRound:
    """A round of n workers."""
    if way == "allgather":
        hosting = replace(hosting, master_hosts=True)  # all ranks host workers
    each = math.ceil(n / hosting.hosts(n))
    gradient, packing = each * costs.gradient(hosting.rows(n, costs.n_samples)), costs.packing(each)
    up, down = n * (costs.share * costs.bits_up + (1.0 - costs.share) * 32.0), costs.bits_down(costs.share * n)
    if way == "allgather":
        fold, exchange = costs.fold(costs.share * n), _gathered(link, hosting, n, up)
        return ModelledRound(n, gradient, packing, fold, exchange, up, 0.0)
    if way == "star":
        fold, exchange = costs.fold(costs.share * n), _star(link, hosting, n, up, down)
        return ModelledRound(n, gradient, packing, fold, exchange, up, n * down)
    hosts, alone = hosting.hosts(n), hosting.ranks == 1
    fan_in, fold, exchange = TreeOfCosts(costs, link, n).climbed(hosts, hosting.master_hosts or alone, down)
    return ModelledRound(n, gradient, packing, fold, 0.0 if alone else exchange, up, n * down, fan_in)


def _star(link: LinkCosts, hosting: Hosting, n: int, up: float, down: float) -> float:
    """All messages enter the master's port, and then an answer to each rank leaves it."""
    senders = hosting.senders(n)
    if senders == 0:
        return 0.0
    from_others = up * senders / hosting.hosts(n)
    return 2.0 * link.c0 + link.c1 * (from_others + senders * down) + link.message * 2.0 * (senders - 1)


def _gathered(link: LinkCosts, hosting: Hosting, n: int, up: float) -> float:
    """Lengths, then messages: ⌈log2 ranks⌉ steps each; every rank gets the messages of all others."""
    hosts = 1 if hosting.ranks == 1 else hosting.hosts(n)
    return 2.0 * math.ceil(math.log2(hosts)) * link.c0 + link.c1 * up * (hosts - 1) / hosts


def spread(first: int, last: int) -> list[int]:
    """Numbers of workers from the first to the last: both, and 1, 2 and 5 times powers of ten between."""
    powers = range(len(str(last)))
    return sorted({first, last, *(m for i in powers for digit in (1, 2, 5) if first < (m := digit * 10**i) < last)})


def table(found: Sequence[ModelledRound]) -> list[str]:
    """The rounds as a table of 80 columns."""
    heads = [f"{name:>9s}" for name in ("gradient", "packing", "fold", "exchange", "a round")]
    lines = [f"workers{''.join(heads)}   largest  bits up     down"]
    for r in found:
        times = "".join(f"{time_text(seconds):>9s}" for seconds in (*(getattr(r, part) for part in PARTS), r.seconds))
        lines.append(f"{r.n:7d}{times}{r.largest:>10s}{_size(r.bits_up):>9s}{_size(r.bits_down):>9s}")
    return lines


def time_text(seconds: float) -> str:
    """Three digits and a unit."""
    for unit, length in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= 0.9995 * length:
            return f"{_digits(seconds / length)} {unit}"
    return "0" if seconds < 5e-10 else f"{_digits(1e6 * seconds)} µs"


def _size(bits: float) -> str:
    for unit in (" ", "k", "M", "G", "T"):
        if bits < 999.5:
            return f"{_digits(bits)} {unit}".rstrip()
        bits /= 1000
    return f"{_digits(bits)} P"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 99.95 or value == 0 else f"{value:.3g}"


def statements(costs: PartCosts, link: LinkCosts, hosting: Hosting, way: Way, ns: Sequence[int]) -> list[str]:
    """From how many workers on the fold and the exchange take more than the workers' own part, and which n is quickest."""
    found = []
    for part in ("exchange", "fold"):
        n = _from(part, costs, link, hosting, way, ns)
        where = "never" if n is None else f"from {workers_text(n)} on" if n > ns[0] else f"at {workers_text(n)} already"
        found.append(f"{part} above gradient and packing: {where}")
    quickest = min((modelled(costs, link, hosting, way, n) for n in ns), key=lambda r: r.seconds)
    return [*found, f"quickest round: {workers_text(quickest.n)}, {time_text(quickest.seconds)}"]


def _from(part: str, costs: PartCosts, link: LinkCosts, hosting: Hosting, way: Way, ns: Sequence[int]) -> int | None:
    """The least n of the range from which on a part takes more than gradient and packing; None if that is so nowhere."""

    def saturates(n: int) -> bool:
        r = modelled(costs, link, hosting, way, n)
        return bool(getattr(r, part) > r.gradient + r.packing)

    if saturates(ns[0]):
        return ns[0]
    for low, high in pairwise(ns):
        if saturates(high):
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if saturates(middle) else (middle, high)
            return high
    return None


def workers_text(n: int) -> str:
    """ "1 worker", "2 workers"."""
    return f"{n} worker{'' if n == 1 else 's'}"


def workers_of(text: str) -> list[int]:
    """The numbers of workers that "10:10000", or "1000", asks for; UserError if it is neither, or asks for more than `MOST`."""
    first, _, last = text.partition(":")
    ends = [int(end) if end.isdecimal() and len(end) < 20 else 0 for end in (first, last or first)]
    if not 1 <= ends[0] <= ends[1] <= MOST:
        raise UserError(f"--model {text}: it should be numbers of workers, such as 10:10000, up to {MOST}")
    return spread(*ends)
