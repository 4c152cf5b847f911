import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from mpi_compress.algorithms.vocabulary import (
    WHOLE_GRADIENTS,
    Average,
    Log,
    Method,
    Objective,
    Round,
    Sampling,
    Step,
    Vector,
    algorithms,
    fact,
    has_state,
)
from mpi_compress.exchange.host import rest
from mpi_compress.kernels.locks import add_locked, add_shared, read_locked

_LOGS = ("updates", "coordinate_writes", "retries")
_TRIES = 1000  # to take a lock before a worker sleeps a moment: who holds it may have no core meanwhile


@algorithms.register("async-sgd")
class AsyncSGD(Method):
    """Workers of one host that share one iterate and never wait for each other: GSpar §4.2.

    worker, again and again     g ← the gradient of a minibatch of its shard, at whatever x holds meanwhile
                                x_j ← x_j − γ Q(g)_j, at once for each coordinate j that Q kept

    With `locked`, as GSpar §4.2 describes its threads, each coordinate has a lock, taken by compare-and-swap: a worker takes it to
    read the coordinate, which may block another's write to it, and to write it. Without, reads take no lock, and a write is one
    compare-and-swap of the coordinate.

    No message is sent, so no bits are counted; `updates`, `coordinate_writes` and `retries` (writes that another worker was faster
    than, with `locked` tries to take a lock that another held) are counted over all workers. γ_k is the step of a worker's own k-th
    update. A round is n updates, whoever makes them. Results depend on timing, except in one process, where workers take turns.

    With `pool` = m, m random numbers are drawn for each worker before the clock starts, and its compressor reads them again and
    again, as in GSpar §4.2; without it, every update draws its own.
    """

    paper = "GSpar §4.2"
    needs = (WHOLE_GRADIENTS,)
    step: Step = "1/L"  # γ, the step size; γ_k is that of a worker's own k-th update
    batch: int = 1  # samples of each worker's minibatch
    sampling: Sampling = "with-replacement"  # samples drawn uniformly over the shard, or from a new permutation in each epoch
    regularizer: Literal["worker", "master"] | None = None  # must be "worker"; left out: as [objective] says
    average: Average = "last"  # must be "last": there are no rounds to average over
    locked: bool = False  # true: coordinates are read and written under locks, as by the threads of GSpar §4.2
    pool: int | None = None  # random numbers drawn for each worker before the clock starts; left out: new ones in each update

    def check(self) -> None:
        if self.average != "last":
            raise ValueError('async-sgd has no rounds to average over: leave out average, or say "last"')
        if has_state(self.up.compressor):
            raise ValueError(f"async-sgd keeps nothing for a compressor: {self.up.compressor.name} has a state")
        least = 2 * self.setting.dim + 64
        if self.pool is not None and self.pool < least:
            raise ValueError(
                f"pool = {self.pool} must be at least 2d + 64 = {least}, what one update may read; many times that is better"
            )

    def update(self, shared: Any, i: int, f: Objective, t: Round) -> None:
        """Worker i's next update of `shared.x`."""
        x = self._read(shared, i) if self.locked else shared.x
        c = self.up.compress(f.gradient(x, self.rows(f, t)), t)
        held = c.sparse()
        indices, values = (np.arange(c.dim, dtype=np.uint32), c.dense()) if held is None else (held.indices, held.values)
        if self.locked:
            write = partial(add_locked, shared.locks, indices, values, -self.gamma(t.k))
            shared.retries[i] += _persist(lambda at: write(at, _TRIES, shared.x), indices.size)
        else:
            shared.retries[i] += add_shared(indices, values, -self.gamma(t.k), shared.x)
        shared.writes[i] += indices.size
        shared.updates[i] += 1

    def _read(self, shared: Any, i: int) -> Vector:
        """A copy of x (d,), each coordinate read under its lock."""
        x = np.empty(shared.x.size)
        shared.retries[i] += _persist(lambda at: read_locked(shared.locks, shared.x, at, _TRIES, x), x.size)
        return x

    @fact
    def log(self) -> Log:
        def numbers(worker: Any) -> Sequence[float]:
            shared, i = worker
            return float(shared.updates[i]), float(shared.writes[i]), float(shared.retries[i])

        n = self.setting.n
        return Log(_LOGS, numbers, lambda means, node: {name: round(mean * n) for name, mean in means.items()})


def _persist(go_on: Callable[[int], tuple[int, int]], end: int) -> int:
    """Call `go_on` from coordinate to coordinate until the end, sleeping where a lock is held by others; the tries that failed."""
    at = failed = 0
    began: float | None = None
    while at < end:
        reached, tries = go_on(at)
        failed += tries
        if reached < end:
            now = time.perf_counter()
            began = now if began is None or reached > at else began
            rest(now - began)
        at = reached
    return failed
