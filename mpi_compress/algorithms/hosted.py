"""The workers that one process hosts, and how they run a round."""

from collections.abc import Iterator, Mapping
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
from mpi_compress.core.arrays import in_turn

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
        awake = self.awake(node, k)
        return self.joined(self.sent(node, k, awake), awake)

    def joined(self, sent: Mapping[int, Batch], rows: NDArray[np.int64]) -> Batch:
        """The messages of all rows; these were sent by some of them, and the others are silent."""
        return spread(together([sent[start] for start in sorted(sent)]), rows, len(self.fs))

    def sent(self, node: Any, k: int, rows: NDArray[np.int64]) -> dict[int, Batch]:
        """The messages of round k of these rows, by the first row of each part of them that works together."""
        fs, t, sent = self.fs, self.round(k), dict[int, Batch]()
        if fs.are_random:
            for row in rows.tolist():
                fs.rounds[row] = t[row]
        with fs.iterate.fixed(getattr(node, "x", None)):
            for part in self.parts(rows):
                w = memories.some(self.workers, part)
                sent[part.start] = self._sent(node, w, fs[part], t[part])
                memories.put(self.workers, part, w)
        return sent

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
        awake = self.taking_part(node, k)
        return in_turn(len(self.fs)) if awake.size == self.algorithm.setting.n else np.flatnonzero(np.isin(self.fs.who, awake))

    def taking_part(self, node: Any, k: int) -> NDArray[np.int64]:
        """The workers, wherever they are hosted, that take part in round k."""
        setting = self.algorithm.setting
        if setting.r == setting.n or self.algorithm.needs_all(node, k):
            return in_turn(setting.n)
        return np.array(sorted(participants(self.streams, setting.n, setting.r, k)))
