"""Workers without rounds: one iterate in memory that all ranks of a host share, to which each adds when it is ready."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.algorithms.async_sgd import AsyncSGD
from mpi_compress.core.streams import Pool, Role, Round, Streams
from mpi_compress.engine.checkpoint import Keeper
from mpi_compress.engine.observer import Observer
from mpi_compress.exchange import Exchange
from mpi_compress.job.stop import Verdict
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.objective import Objective

_GLANCE = 1e-3  # seconds between two looks of a rank that has nothing to do


@dataclass(frozen=True)
class Shared:
    """What all ranks see, and write to."""

    x: Vector  # (d,) the iterate
    updates: NDArray[np.int64]  # (n,) of each worker so far; each is written by that worker's rank alone, as are the next two
    writes: NDArray[np.int64]  # (n,) coordinates written
    retries: NDArray[np.int64]  # (n,) writes that another rank's came before

    @staticmethod
    def words(dim: int, n: int) -> int:
        """Of 8 bytes each, that it needs."""
        return dim + 3 * n

    @classmethod
    def within(cls, memory: NDArray[np.float64], dim: int, n: int) -> "Shared":
        """Laid over `words` of zeros."""
        counts = memory[dim:].view(np.int64).reshape(3, n)
        return cls(memory[:dim], *counts)


def run(
    algorithm: AsyncSGD,
    objectives: Mapping[int, Objective],
    exchange: Exchange,
    streams: Streams,
    x0: Vector,
    observer: Observer,
    keeper: Keeper | None = None,
) -> tuple[Verdict, Vector]:
    """Update until the observer ends it.  All ranks stand still while a row is logged; nothing else holds one up.

    Round k is when the workers have made k·n updates in all, whoever made them; some ranks may be one ahead.

    Returns:
        the observer's verdict, and the last iterate (d,).
    """
    n = exchange.n
    shared = Shared.within(exchange.memory(Shared.words(x0.size, n)), x0.size, n)
    workers: dict[int, Any] = {i: (shared, i) for i in objectives}
    pools = {i: _pool(algorithm.pool, streams, i) for i in objectives}
    k, begin = 0, Shared(x0, *np.zeros((3, n), dtype=np.int64))
    if keeper is not None:
        k, begin, _, read = keeper.restore(k, begin, None, dict.fromkeys(objectives, 0))
        for pool, at in zip(pools.values(), read.values(), strict=True):
            if pool:
                pool.at = at
    if exchange.is_root:
        for kept, held in zip(vars(begin).values(), vars(shared).values(), strict=True):
            held[:] = kept
    exchange.agree(0)
    while True:
        finite = bool(exchange.agree(bool(np.isfinite(shared.x).all())))
        verdict = observer.look(k, algorithm, shared, workers, finite)
        if keeper is not None and not verdict:
            verdict = keeper.look(k, shared, None, {i: pool.at if pool else 0 for i, pool in pools.items()})
            exchange.meet()  # nobody updates while x is being saved
        if verdict:
            return verdict, shared.x.copy()
        start = time.perf_counter()
        k += observer.every if observer.stop.rounds is None else min(observer.every, observer.stop.rounds - k)
        while shared.updates.sum() < k * n:
            for i, f in objectives.items():
                before = time.perf_counter()
                try:
                    algorithm.update(shared, i, f, Round(int(shared.updates[i]), streams, Role.WORKER, i, pools[i]))
                except OverflowError as error:  # it has diverged, and every rank will see that
                    if np.isfinite(shared.x[0]):  # what comes after the first one is but its consequence
                        observer.refusals[f"worker {i}"] = error
                    shared.x[0] = np.nan
                    shared.updates[i] += 1
                observer.clock.sends += time.perf_counter() - before
                if shared.updates.sum() >= k * n:
                    break
            if not objectives:
                time.sleep(_GLANCE)
        exchange.meet()
        observer.clock.wall += time.perf_counter() - start


def _pool(size: int | None, streams: Streams, worker: int) -> Pool | None:
    """A worker's random numbers, drawn at once."""
    if size is None:
        return None
    return Pool(streams.at(Role.WORKER, worker, 0).integers(0, 2**64 - 1, size, dtype=np.uint64, endpoint=True))
