from itertools import pairwise
from math import inf
from typing import Any

from mpi_compress.core.expressions import Time, bits_per_second, seconds
from mpi_compress.core.of_workers import rows_of_workers
from mpi_compress.core.registry import fact
from mpi_compress.messages.costs.base import CostModel, costs
from mpi_compress.messages.costs.links import Links, Row

Rows = list[list[float | str]]


@costs.register("trace")
class Trace(CostModel):
    """Seconds on links that change: a table of (second, latency, bandwidth), walked as the run's own clock goes on.

    A row holds from its second until the next one; the first is that of second 0, the last one stays, or with `period` all begin
    again. A message of P bits on the wire takes the latency of the moment, and then P bits at the bandwidths that follow. Several
    tables are the workers' in turn: worker i has table i mod their number, up and down.
    """

    rows: Rows | None = None  # [[second, latency, bandwidth], …], such as [["0 s", "5 ms", "40 Mbit/s"]], of all workers
    of_workers: list[Rows] | None = None  # such a table for each worker; with fewer tables than workers, in turn
    file: str | None = None  # path of a CSV file with columns second, latency, bandwidth, and worker (0, 1, …) if they differ
    period: Time | None = None  # after which the tables begin again; left out: their last rows stay
    on_wire, unit = True, "s"

    def __post_init__(self) -> None:
        given = [name for name in ("rows", "of_workers", "file") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"one of rows, of_workers and file is needed, and {' and '.join(given) or 'none'} was given")
        last = max(table[-1][0] for table in self.clock.tables)  # which refuses what is no table
        if self.period is not None and not float(self.period) > last:
            raise ValueError(f"period = {self.period} should be later than the last row, at second {last:g}")

    @fact
    def clock(self) -> Links:
        tables: Any = self.of_workers or [self.rows or []]
        if self.file is not None:
            tables = rows_of_workers(self.file, ("second", "latency", "bandwidth"), "links")
        return Links(tuple(map(_checked, tables)), None if self.period is None else float(self.period))

    def cost(self, payload: Any) -> Any:
        """C(P) on the link of worker 0 as the clock starts."""
        return self.clock.at(0.0, 0).cost(payload)


def _checked(table: Rows) -> tuple[Row, ...]:
    """A table in seconds and bits a second; ValueError with its first row that is none."""
    found: list[Row] = []
    for i, row in enumerate(table):
        try:
            if len(row) != 3:
                raise ValueError(f"{len(row)} numbers were given, and it should be a second, a latency and a bandwidth")
            second, latency, bandwidth = map(_plain, row)
            found.append((seconds(second), seconds(latency), bits_per_second(bandwidth)))
        except ValueError as error:
            raise ValueError(f"row {i}: {error}") from None
        if not 0 <= found[-1][1] < inf:
            raise ValueError(f"row {i}: a latency of {row[1]} is not possible")
    starts = [row[0] for row in found]
    if not starts or starts[0] != 0 or not all(a < b < inf for a, b in pairwise(starts)):
        raise ValueError("the seconds of a table should begin at 0 and rise")
    return tuple(found)


def _plain(value: float | str) -> float | str:
    """A number without a unit, as a CSV file has it, as a number; anything else as it is."""
    try:
        return float(value)
    except ValueError:
        return value

