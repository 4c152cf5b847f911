"""Links that change: tables of (second, latency, bandwidth), walked as the run's own clock goes on."""

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

from mpi_compress.core.expressions import rate_text
from mpi_compress.core.sums import added
from mpi_compress.messages.costs.base import CostModel

Row = tuple[float, float, float]  # second, latency [s], bandwidth [bit/s]


@dataclass(frozen=True)
class Moment(CostModel):
    """C = latency + P/bandwidth, in seconds: a link as it is at one moment."""

    on_wire = True
    latency: float  # seconds a message
    bandwidth: float  # bits a second

    def cost(self, payload: Any) -> Any:
        return self.latency + payload / self.bandwidth


@dataclass(frozen=True)
class Links:
    """The links between the master and each worker, up and down. A row of a table holds from its second until the next one."""

    tables: tuple[tuple[Row, ...], ...]  # the workers' in turn: worker i has table i mod their number
    period: float | None  # after which the tables begin again; None: their last rows stay

    @cached_property
    def _capacities(self) -> tuple[float, ...]:
        """The bits that each table lets pass in a period; infinite without one."""
        return tuple(added((self._end(t, i) - row[0]) * row[2] for i, row in enumerate(t)) for t in self.tables)

    def at(self, second: float, worker: int) -> Moment:
        """The link of a worker at a second of the clock."""
        table, row, _ = self._place(second, worker)
        return Moment(*table[row][1:])

    def arrival(self, bits: float, second: float, worker: int) -> tuple[float, float]:
        """When a message that is sent at `second` has arrived, and the latency that it had; the link may change meanwhile."""
        latency = self.at(second, worker).latency
        now = second + latency
        table, row, left = self._place(now, worker)
        if self.period is not None:  # whole periods take the same from any moment on
            periods, bits = divmod(bits, self._capacities[worker % len(self.tables)])
            now += periods * self.period
        while bits > left * table[row][2]:
            bits -= left * table[row][2]
            now += left
            row = (row + 1) % len(table)
            left = self._end(table, row) - table[row][0]
        return now + bits / table[row][2], latency

    def __str__(self) -> str:
        _, latencies, rates = zip(*(row for table in self.tables for row in table), strict=True)
        ends = [rate_text(each(rates)) for each in (min, max)], [f"{1e3 * each(latencies):.4g} ms" for each in (min, max)]
        return " and ".join(" to ".join(dict.fromkeys(each)) for each in ends)

    def _place(self, second: float, worker: int) -> tuple[tuple[Row, ...], int, float]:
        """A worker's table, the number of its row that holds at a second, and for how many seconds from then on."""
        table = self.tables[worker % len(self.tables)]
        within = second if self.period is None else second % self.period
        row = bisect_right(table, within, key=lambda row: row[0]) - 1
        return table, row, self._end(table, row) - within

    def _end(self, table: tuple[Row, ...], row: int) -> float:
        return table[row + 1][0] if row + 1 < len(table) else inf if self.period is None else self.period
