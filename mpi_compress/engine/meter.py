"""V of a method whose theorem states it, beside the theorem's line: evaluated at logged rounds, off the clock and the counts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpi_compress.algorithms.contract import Method
from mpi_compress.algorithms.memories import one
from mpi_compress.algorithms.theorem import Shard, factor, in_mean, unproved, value_of
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.engine.counting import Counters
from mpi_compress.exchange import Exchange
from mpi_compress.kernels.vectors import add_rows
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.objective import Shards


@dataclass(frozen=True)
class Meter:
    """Evaluates V of a method that states it, on every rank together; `shards` are those of the workers hosted here."""

    method: Method
    exchange: Exchange
    streams: Streams
    shards: Sequence[Shard]

    @classmethod
    def of(cls, method: Method, exchange: Exchange, fs: Shards, seed: int) -> "Meter | None":
        """That of a bound method; None if V is not evaluated in its setting."""
        shards = [Shard(f, method.setting.x_star) for f in fs]
        return None if unproved(method) else cls(method, exchange, Streams(seed), shards)

    def means(self, node: Any, workers: Any, x: Vector) -> list[Any]:
        """The means of the workers' terms at the iterate x (d,), at rank 0."""
        total, n, sizes = np.zeros(0), 0, np.zeros(0)
        for rows, lengths in self.exchange.collect(self._reports(node, workers, x)):
            total = total if n else np.zeros(rows.shape[1])
            add_rows(rows, total)
            n, sizes = n + len(rows), lengths.astype(int)
        parts = np.split(total / max(1, n), np.cumsum(abs(sizes[:-1])))
        return [float(part[0]) if size < 0 else part for part, size in zip(parts, sizes, strict=False)]

    def _reports(self, node: Any, workers: Any, x: Vector) -> Iterator[list[Vector]]:
        """The terms of each worker in a row, and the length of each term; −1 for a number."""
        each = []
        for i, shard in enumerate(self.shards):
            shard.x = x
            each.append(self.method.theorem.terms(self.method, node, one(workers, i), shard))
        if each:
            rows = [np.concatenate([np.empty(0), *map(np.ravel, terms)]) for terms in each]
            yield [np.array(rows), np.array([term.size if isinstance(term, np.ndarray) else -1.0 for term in each[0]])]

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
