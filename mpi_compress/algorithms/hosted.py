"""The workers that one process hosts, and how they play a round."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mpi_compress.algorithms.base import Algorithm
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.messages.link import Message, attempt
from mpi_compress.problem.objective import Objective


@dataclass
class HostedWorkers(ABC):
    """The workers hosted here, in worker order."""

    algorithm: Algorithm
    objectives: Mapping[int, Objective]  # f_i of each
    workers: Mapping[int, Any]  # their own memories
    streams: Streams  # of their random draws
    states: Mapping[int, Any] = field(default_factory=dict)  # of their compressors

    def round(self, i: int, k: int) -> Round:
        """Round k as worker i sees it, and as its objective draws by it."""
        t = Round(k, self.streams, Role.WORKER, i, state=self.states.get(i))
        self.objectives[i].round = t
        return t

    @abstractmethod
    def messages(self, node: Any, k: int) -> list[Message]:
        """Their messages of round k; one that cannot be encoded is empty and says why."""


class OneByOne(HostedWorkers):
    """The definition: every worker runs the algorithm's own lines."""

    def messages(self, node: Any, k: int) -> list[Message]:
        sends, fs = self.algorithm.worker_sends, self.objectives
        return [attempt(sends, node, worker, fs[i], self.round(i, k)) for i, worker in self.workers.items()]
