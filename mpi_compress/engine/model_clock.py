"""The clock of changing links: what a run's rounds would take on them."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mpi_compress.engine.counting import Counters
from mpi_compress.exchange import Exchange
from mpi_compress.messages.costs.links import Links
from mpi_compress.messages.link import LENGTH_BYTES, Batch
from mpi_compress.problem.objective import Shards


class ModelClock:
    """Moves the clock in `Counters.model_seconds` on, on all ranks together: what rounds would take on the cost's links.

    A round takes the slowest worker's gradient and message up, and then the slowest message down. The master's own time is 0. The
    links are those between the master and each worker: whatever exchange the run has, its clock is the same, so that methods that
    look at it send the same bytes on every layout.

    Args:
        objectives: f_i of the workers hosted here, whose samples say what a worker computed. A sample has the mean number of
            nonzeros of its worker's rows.
    """

    def __init__(self, links: Links, exchange: Exchange, objectives: Shards):
        self._links, self._exchange, self._objectives = links, exchange, objectives
        self._nonzeros = [term.rows.nonzeros / max(1, len(term.rows)) for term in objectives.terms]
        self._before = objectives.samples

    def begin(self) -> None:
        """A round begins: what workers compute from now on is its gradients."""
        self._before = self._objectives.samples.copy()

    def end(self, c: Counters, ups: Sequence[int], downs: Batch) -> None:
        """The round is over; at rank 0 ups are the wire bits of every worker's message, downs one message to each or to all."""
        computed: list[float] = []
        if self._links.computing(1.0) > 0:
            for (seconds,) in self._exchange.collect(self._reports()):
                computed += seconds.tolist()
        if self._exchange.is_root:
            self._add(c, computed or [0.0] * len(ups), ups, downs)
        c.model_seconds = self._exchange.agree(c.model_seconds)

    def _reports(self) -> Iterator[list[NDArray[np.float64]]]:
        if self._nonzeros:
            nonzeros = (self._objectives.samples - self._before) * self._nonzeros
            yield [np.array([self._links.computing(each) for each in nonzeros.tolist()])]

    def _add(self, c: Counters, computed: Sequence[float], ups: Sequence[int], downs: Batch) -> None:
        """Add a round to the clock, and what the messages that were waited for say of it."""
        last, arrived, latency = self._slowest(ups, [c.model_seconds + seconds for seconds in computed])
        c.model_fixed += computed[last] + latency
        c.model_bits += ups[last]
        each = np.resize(8 * (LENGTH_BYTES + downs.lengths), len(ups)).tolist()
        last, c.model_seconds, latency = self._slowest(each, [arrived] * len(each))
        c.model_fixed += latency
        c.model_bits += each[last]

    def _slowest(self, bits: Sequence[int], starts: Sequence[float]) -> tuple[int, float, float]:
        """The worker whose message, of so many bits and sent at that second, arrives last; when, and its latency."""
        found = [self._links.arrival(each, start, i) for i, (each, start) in enumerate(zip(bits, starts, strict=True))]
        last = max(range(len(found)), key=lambda i: found[i][0])
        return last, *found[last]
