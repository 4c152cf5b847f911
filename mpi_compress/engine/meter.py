"""V of a method whose theorem states it, beside the theorem's line: evaluated at logged rounds, off the clock and the counts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpi_compress.algorithms.contract import Method
from mpi_compress.algorithms.theorem import Shard, factor, in_mean, unproved, value_of
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.engine.counting import Counters
from mpi_compress.exchange import Exchange
from mpi_compress.kernels.vectors import add_rows
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.objective import Shards

_NUMBER = -1.0  # in place of the length of a term that is no vector


class Means:
    """Adds up workers' terms, in worker order. A report has the length of each term, and the terms of m workers in rows."""

    def __init__(self) -> None:
        self.n, self.lengths, self.total = 0, np.zeros(0), np.zeros(0)

    def add(self, report: list[Vector]) -> int:
        lengths, rows = report
        if self.n == 0:
            self.lengths, self.total = lengths.copy(), np.zeros(rows.shape[1])
        add_rows(rows, self.total)
        self.n += len(rows)
        return len(rows)

    def terms(self) -> list[Any]:
        """The mean of each term."""
        parts = np.split(self.total / max(1, self.n), np.cumsum(np.abs(self.lengths[:-1])).astype(int))
        return [float(part[0]) if length == _NUMBER else part for part, length in zip(parts, self.lengths, strict=False)]


@dataclass(frozen=True)
class Meter:
    """Evaluates V of a method that states it, on every rank together; `shards` are those of the workers hosted here."""

    method: Method
    exchange: Exchange
    streams: Streams
    shards: Mapping[int, Shard]

    @classmethod
    def of(cls, method: Method, exchange: Exchange, fs: Shards, seed: int) -> "Meter | None":
        """That of a bound method; None if V is not evaluated in its setting."""
        shards = {i: Shard(f, method.setting.x_star) for i, f in fs.items()}
        return None if unproved(method) else cls(method, exchange, Streams(seed), shards)

    def means(self, node: Any, workers: Mapping[int, Any], x: Vector) -> list[Any]:
        """The means of the workers' terms at the iterate x (d,), at rank 0."""
        means = Means()
        self.exchange.collect(self._reports(node, workers, x), means if self.exchange.is_root else None)
        return means.terms()

    def _reports(self, node: Any, workers: Mapping[int, Any], x: Vector) -> Iterator[list[Vector]]:
        rows, lengths = list[Vector](), list[float]()
        for i, shard in self.shards.items():
            shard.x = x
            terms = self.method.theorem.terms(self.method, node, workers[i], shard)
            lengths = [term.size if isinstance(term, np.ndarray) else _NUMBER for term in terms]
            rows.append(np.concatenate([np.empty(0), *map(np.ravel, terms)]))
        if rows:
            yield [np.array(lengths), np.array(rows)]

    def value(self, node: Any, means: list[Any], master: Any, x: Vector, f: float, gradient: Vector) -> float:
        """V, at rank 0."""
        with np.errstate(all="ignore"):  # a run may diverge
            return value_of(self.method, node, means, master, x, f, gradient)

    def columns(self, c: Counters, before: int, k: int, V: float) -> dict[str, float]:
        """The columns of round k, whose V is noted for the next one; `before` is the round of the last record, −1 for none."""
        bound, rate = V, np.nan
        if before >= 0 and not np.isnan(c.lyapunov):  # a local theorem begins where x is near enough
            ρ = [factor(self.method, Round(j, self.streams, Role.MASTER)) for j in range(before, k)]
            bound = c.lyapunov_bound * float(np.prod(ρ))
            rate = (V / c.lyapunov) ** (1 / (k - before)) if c.lyapunov > 0 else np.nan
        c.lyapunov, c.lyapunov_bound = V, bound
        return {"lyapunov": V, "lyapunov_rate": rate, "lyapunov_bound": bound}


def attributes(method: Method) -> Mapping[str, Any]:
    """Attributes of the result of a run of this bound method."""
    why = unproved(method)
    return {"lyapunov_unknown": why} if why else {"lyapunov_in_mean": in_mean(method)}
