"""The workers that one process hosts, and how they run a round."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from mpi_compress.algorithms.contract import Algorithm
from mpi_compress.algorithms.sampling import participants
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.messages.link import SILENT, Message, attempt
from mpi_compress.problem.objective import Shards


@dataclass
class HostedWorkers:
    """The workers hosted here, in worker order. A fast path runs them together, equal to `messages` to the last bit."""

    algorithm: Algorithm
    objectives: Shards  # f_i of each
    workers: Mapping[int, Any]  # their own memories
    streams: Streams  # of their random draws
    states: Mapping[int, Any] = field(default_factory=dict)  # of their compressors
    second: float = 0.0  # of the model's clock as the round begins

    def __post_init__(self) -> None:
        self.fs = dict(self.objectives.items())

    def round(self, i: int, k: int) -> Round:
        """Round k as worker i sees it, and as its objective draws by it."""
        t = Round(k, self.streams, Role.WORKER, i, state=self.states.get(i), second=self.second)
        self.fs[i].shard.rounds[0] = t
        return t

    def awake(self, node: Any, k: int) -> Collection[int]:
        """The workers that take part in round k, of which some are hosted here."""
        setting = self.algorithm.setting
        if setting.r == setting.n or self.algorithm.needs_all(node, k):
            return self.workers
        return participants(self.streams, setting.n, setting.r, k)

    def messages(self, node: Any, k: int) -> list[Message]:
        """Their messages of round k; one that cannot be encoded is empty and says why. Every worker that takes part runs the
        algorithm's own lines, and the others are silent."""
        sends, awake = self.algorithm.worker_sends, self.awake(node, k)
        with self.objectives.iterate.fixed(getattr(node, "x", None)):
            return [
                attempt(sends, node, worker, self.fs[i], self.round(i, k)) if i in awake else SILENT
                for i, worker in self.workers.items()
            ]
