"""The workers that one process hosts, and how they run a round."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.algorithms import memories
from mpi_compress.algorithms.vocabulary import (
    Algorithm,
    Batch,
    Role,
    Rounds,
    Shards,
    Streams,
    participants,
    silent,
    spread,
    together,
)

_CACHED = 2**20  # bytes of vectors that are worked on together: longer ones would leave the cache between two passes


@dataclass
class HostedWorkers:
    """The workers hosted here, in worker order."""

    algorithm: Algorithm
    fs: Shards
    workers: Any  # their own memories
    streams: Streams  # of their random draws
    states: list[Any]  # of their compressors
    second: float = 0.0  # of the model's clock as the round begins

    def round(self, k: int) -> Rounds:
        """Round k as they see it."""
        return Rounds(k, self.streams, Role.WORKER, self.fs.who, self.states, self.second)

    def messages(self, node: Any, k: int) -> Batch:
        """Their messages of round k. Those that do not take part are silent; one that cannot be encoded is refused and says why."""
        fs, t, awake, sent = self.fs, self.round(k), self.awake(node, k), {}
        if fs.are_random:
            fs.rounds[:] = [*t]
        with fs.iterate.fixed(getattr(node, "x", None)):
            for part in self.parts(awake):
                w = memories.some(self.workers, part)
                sent[part.start] = self._sent(node, w, fs[part], t[part])
                memories.put(self.workers, part, w)
        return spread(together([sent[start] for start in sorted(sent)]), awake, len(fs))

    def _sent(self, node: Any, w: Any, fs: Shards, t: Rounds) -> Batch:
        try:
            return self.algorithm.workers_send(node, w, fs, t)
        except OverflowError as error:
            return replace(silent(len(fs)), refused=dict.fromkeys(range(len(fs)), error))

    def parts(self, awake: NDArray[np.int64]) -> Iterator[slice]:
        """Neighbours among these rows that work together: few of long vectors, all of short ones."""
        most = max(1, _CACHED // (8 * self.algorithm.setting.dim))
        alone = awake.size and awake[-1] - awake[0] < awake.size
        for run in [awake] if alone else np.split(awake, np.flatnonzero(np.diff(awake) > 1) + 1):
            for start in range(0, run.size, most):
                part = run[start : start + most]
                yield slice(int(part[0]), int(part[-1]) + 1)

    def awake(self, node: Any, k: int) -> NDArray[np.int64]:
        """The rows of the workers that take part in round k."""
        setting, who = self.algorithm.setting, np.asarray(self.fs.who)
        if setting.r == setting.n or self.algorithm.needs_all(node, k):
            return np.arange(who.size)
        return np.flatnonzero(np.isin(who, [*participants(self.streams, setting.n, setting.r, k)]))
