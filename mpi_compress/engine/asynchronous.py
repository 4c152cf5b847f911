"""Workers without rounds: one iterate in memory that all ranks of a host share, to which each adds when it is ready."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.clock import now
from mpi_compress.core.streams import Pool, Role, Round, Streams
from mpi_compress.engine.keeper import Keeper
from mpi_compress.engine.observer import Observer
from mpi_compress.exchange import Exchange
from mpi_compress.job.tables import Ending
from mpi_compress.messages.kinds import Vector
from mpi_compress.saving.checkpoint import States

_GLANCE = 1e-3  # seconds between two looks of a rank that hosts no worker


@dataclass(frozen=True)
class Shared:
    """The memory that all ranks of a host read and write."""

    x: Vector  # (d,) the iterate
    updates: NDArray[np.int64]  # (n,) made by each worker; only the worker's own rank writes its number here and in the next two
    writes: NDArray[np.int64]  # (n,) coordinates written
    retries: NDArray[np.int64]  # (n,) writes that another rank's write came before; with locks, tries to take one that was held
    locks: Vector  # (d,) 1 where a worker holds the coordinate's lock, 0 elsewhere

    @classmethod
    def within(cls, memory: NDArray[np.float64], n: int) -> "Shared":
        """Lies in 2d + 3n words of memory that are 0."""
        x, locks = memory[: -3 * n].reshape(2, -1)
        updates, writes, retries = memory[-3 * n :].view(np.int64).reshape(3, n)
        return cls(x, updates, writes, retries, locks)

    @classmethod
    def begun_at(cls, x0: Vector, n: int) -> "Shared":
        """Returns the memory that all n workers find before their first update."""
        updates, writes, retries = np.zeros((3, n), dtype=np.int64)
        return cls(x0, updates, writes, retries, np.zeros(x0.size))


def run(
    algorithm: Any, streams: Streams, x0: Vector, observer: Observer, keeper: Keeper | None = None
) -> tuple[Ending, Vector]:
    """Update until the observer ends the run; its verdict, and the last iterate (d,). All ranks wait while a row is logged, and at
    no other time. Round k ends when all workers together have made k·n updates, whichever of them made more; some ranks may be one
    update ahead."""
    exchange, objectives, stop = observer.exchange, observer.objectives, observer.stop
    n = exchange.n
    shared = Shared.within(exchange.memory(2 * x0.size + 3 * n), n)
    workers = [(shared, i) for i in objectives.who.tolist()]
    pools = {i: _pool(algorithm.pool, streams, i) for i in objectives.who.tolist()}
    k = _begin(shared, pools, exchange, x0, keeper)
    while True:
        finite = bool(exchange.agree(bool(np.isfinite(shared.x).all())))
        verdict = observer.look(k, algorithm, shared, workers, finite)
        if keeper is not None and not verdict:
            verdict = keeper.look(States(k, shared, None, [pool.at if pool else 0 for pool in pools.values()], [None] * len(pools)))
            exchange.barrier()  # nobody updates while x is being saved
        if verdict:
            return verdict, shared.x.copy()
        start = now()
        k += observer.every if stop.rounds is None else min(observer.every, stop.rounds - k)
        _update_until(k * n, algorithm, shared, observer, lambda i: (streams, Role.WORKER, i, pools[i]))
        exchange.barrier()
        observer.clock.wall += now() - start


def _begin(shared: Shared, pools: Mapping[int, Pool | None], exchange: Exchange, x0: Vector, keeper: Keeper | None) -> int:
    """Put the first state, or the one that was saved, into the shared memory; returns its round."""
    first = States(0, Shared.begun_at(x0, exchange.n), None, [0] * len(pools), [None] * len(pools))
    begin = first if keeper is None else keeper.restore(first)
    for pool, at in zip(pools.values(), begin.workers, strict=True):
        if pool:
            pool.at = at
    if exchange.is_root:
        for kept, held in zip(vars(begin.node).values(), vars(shared).values(), strict=True):
            held[:] = kept
    exchange.agree(0)
    return begin.k


def _update_until(
    updates: int, algorithm: Any, shared: Shared, observer: Observer, address: Callable[[int], tuple[Any, ...]]
) -> None:
    """Let the workers hosted here update in turn until all have made so many updates; `address` gives a worker's draws."""
    fs = [*observer.objectives.items()]
    while shared.updates.sum() < updates:
        for i, f in fs:
            before = now()
            try:
                f.shard.rounds[0] = t = Round(int(shared.updates[i]), *address(i))
                algorithm.update(shared, i, f, t)
            except OverflowError as error:  # it has diverged, and every rank will see that
                if np.isfinite(shared.x[0]):  # later errors follow from the first one
                    observer.refusals = {**observer.refusals, f"worker {i}": error}
                shared.x[0] = np.nan
                shared.updates[i] += 1
            observer.clock.sends += now() - before
            if shared.updates.sum() >= updates:
                break
        if not fs:
            time.sleep(_GLANCE)


def _pool(size: int | None, streams: Streams, worker: int) -> Pool | None:
    if size is None:
        return None
    return Pool(streams.at(Role.WORKER, worker, 0).integers(0, 2**64 - 1, size, dtype=np.uint64, endpoint=True))
