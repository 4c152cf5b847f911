"""The tree of folds in the model of scale: seconds of folding and of the exchange."""

from collections.abc import Sequence
from dataclasses import dataclass

from mpi_compress.exchange.base import block, group_levels
from mpi_compress.messages.tree import Tree
from mpi_compress.planning.part_costs import PartCosts
from mpi_compress.planning.scale_link import LinkCosts


@dataclass(frozen=True)
class TreeOfCosts:
    """What ranks add up and send where n workers' messages are added by the tree of folds.

    A rank begins to receive when the slowest of those that send to it is done.
    """

    costs: PartCosts
    link: LinkCosts
    n: int

    def climbed(self, hosts: int, master_hosts: bool, down: float) -> tuple[int, float, float]:
        """How many ranks send to one at most, seconds of folding, and seconds of the exchange, the answer's way down included.

        Groups of ranks are alike, so that one of each size stands for all.
        """
        levels = group_levels(hosts, Tree(self.n).height)
        starts = [[g * hosts >> k for g in range(2**k)] for k in levels[-1:]] or [list(range(hosts))]
        senders, of = starts[0], len(levels) - 1
        came = [self._below(p, of, hosts, levels) for p in senders if p or not master_hosts]
        before = self._done(0, of, hosts, levels, down)
        fold, exchange = self._received(came, down)
        most = max(len(senders), len(self._senders(0, of, hosts, levels)))
        return most, before[0] + self.costs.fold(0.0) + fold, before[1] + exchange

    def _senders(self, p: int, of: int, hosts: int, levels: Sequence[int]) -> list[tuple[int, int]]:
        """Which ranks send to rank p, the first one of a group of each level up to `of`: position and level, −1 without a group."""
        found = []
        for i, k in enumerate(levels[: of + 1]):
            g = ((p + 1 << k) - 1) // hosts
            finer = 1 << (levels[i - 1] - k) if i else 0
            last = (g + 1) * hosts >> k
            within = [(g * finer + j) * hosts >> levels[i - 1] for j in range(1, finer)] if i else range(p + 1, last)
            found += [(q, i - 1) for q in within]
        return found

    def _below(self, p: int, of: int, hosts: int, levels: Sequence[int]) -> Sequence[range]:
        """The pieces that a rank sends, the first one of a group of that level."""
        last = p if of < 0 else ((((p + 1 << levels[of]) - 1) // hosts + 1) * hosts >> levels[of]) - 1
        return Tree(self.n).pieces(range(block(self.n, hosts, p).start, block(self.n, hosts, last).stop))

    def _done(self, p: int, of: int, hosts: int, levels: Sequence[int], down: float) -> tuple[float, float]:
        """Seconds of folding and of the exchange until a rank, the first one of a group of that level, has its sums."""
        senders = self._senders(p, of, hosts, levels)
        before = self._done(*senders[-1], hosts, levels, down) if senders else (0.0, 0.0)  # the largest groups take longest
        fold, exchange = self._received([self._below(*each, hosts, levels) for each in senders], down)
        return before[0] + self._own(Tree(self.n).pieces(block(self.n, hosts, p))) + fold, before[1] + exchange

    def _received(self, came: Sequence[Sequence[range]], down: float) -> tuple[float, float]:
        """Seconds of a rank that adds up what came of others, and those of receiving it and of sending them the answer."""
        pieces, link = [workers for each in came for workers in each], self.link
        if not pieces:
            return 0.0, 0.0
        seconds = 2.0 * link.c0 + link.c1 * (sum(map(self.bits, pieces)) + len(came) * down) + 2.0 * link.message * (len(came) - 1)
        return sum(map(self._added, pieces)), seconds

    def bits(self, workers: range) -> float:
        """Bits of the piece of these workers: a message, or a sum."""
        costs, m = self.costs, len(workers)
        if m == 1:
            return costs.share * costs.bits_up + (1.0 - costs.share) * 32.0
        return 96.0 + min(64.0 * costs.dim, 96.0 * costs.share * m * costs.coordinates)

    def _added(self, workers: range) -> float:
        """Seconds in which a piece that has arrived is decoded and added."""
        if len(workers) == 1:
            return self.costs.share * self.costs.fold.each
        return self.costs.merge * self.bits(workers) / (96.0 + 64.0 * self.costs.dim)

    def _own(self, pieces: Sequence[range]) -> float:
        """Seconds in which a rank adds up the messages of its own workers; those that it passes on are added elsewhere."""
        tree, seconds = Tree(self.n), 0.0
        for workers in pieces:
            if len(workers) > 1:
                leaves = max(1, round(len(workers) * 2**tree.height / self.n))
                leaf = range(max(2, len(workers) // leaves))
                fold = self.costs.fold
                seconds += fold(self.costs.share * len(workers)) - fold(0.0) + (leaves - 1) * self._added(leaf)
        return seconds
