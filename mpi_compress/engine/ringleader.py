"""Ringleader ASGD: x moves along the means of a table of the workers' messages, n times in each cycle."""

from typing import Any

import numpy as np

from mpi_compress.algorithms import Algorithm
from mpi_compress.algorithms.hosted import HostedWorkers
from mpi_compress.engine.observer import Observer
from mpi_compress.engine.queue import Arrival, ArrivalQueue
from mpi_compress.messages.batch import Batch
from mpi_compress.messages.kinds import Dense, Vector
from mpi_compress.messages.link import Arrived, Link
from mpi_compress.saving.checkpoint import States


def tables_at(algorithm: Algorithm) -> Vector | None:
    """The sums (2, n, d) of each worker's messages in the master's table, and in the next one, before the first act; None: its rule
    has no tables."""
    s = algorithm.setting
    return np.zeros((2, s.n, s.dim)) if s.rule is not None and s.rule.tables else None


class Ringleader(ArrivalQueue):
    """Ringleader ASGD: Maranjyan, Richtárik (ICLR 2026, arXiv 2509.22860), Algorithm 1. A cycle has n acts, of two phases.

    phase 1    the table takes messages until it has one of each worker; with the last one x moves
    phase 2    the table takes the next message of each other worker; with each of them x moves
    x moves    x ← x − γ (1/n) Σ_i mean_i,   the mean of worker i's messages in the table

    A worker for whom x has moved in this cycle computes at a point of phase 2; if its messages arrive in this phase, the next
    cycle's table takes them. No message is older than 2n − 2 acts.
    """

    def __init__(self, observer: Observer, hosted: HostedWorkers, s: States):
        super().__init__(observer, hosted, s)
        self.sums: Any = s.tables

    def _is_of_next(self, each: Arrival) -> bool:
        """True if the next cycle's table takes a message: it was computed at a point of this cycle's phase 2."""
        k = each.begun.version + each.staleness
        return each.begun.version > k - k % self.n

    def _acts_with(self, each: Arrival, taken: int) -> bool:
        is_of_next, counts = self._is_of_next(each), self.queued.counts
        counts[int(is_of_next), each.worker] += 1
        return not is_of_next and bool(counts[0].all())

    def arrived(self, ups: Batch, link: Link) -> Arrived | None:
        """The means of the table, with the messages that have arrived."""
        found = super().arrived(ups, link)
        if found is None:
            return None
        is_of_next = np.array([self._is_of_next(each) for each in self._arrivals if each.made.size], dtype=np.int64)
        found.content.add_to(self.sums.reshape(-1, link.dim), 1.0, is_of_next * self.n + found.who)  # type: ignore[call-arg]
        return Arrived(Dense(self.sums[0] / self.queued.counts[0][:, None]), np.arange(self.n), self.n, found.silence)

    def end(self, s: States, uplink: Link, ups: Batch, downlink: Link, downs: Batch) -> None:
        super().end(s, uplink, ups, downlink, downs)
        if (s.k + 1) % self.n == 0:
            for table in (self.queued.counts, self.sums):
                if table is not None:
                    table[0], table[1] = table[1], 0
