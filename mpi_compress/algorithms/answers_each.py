"""The contract of methods whose master has a message of its own for each worker."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from mpi_compress.algorithms.base import Algorithm
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Compressed, Vector
from mpi_compress.messages.link import Message


class AnswersEach(Algorithm):
    """A method whose master sends each worker a message of its own, so that the master alone knows the iterate.

    It has `answers` in place of `master_answers`, and each worker hears its own by `worker_hears`. What `all_hear` takes over then
    is the `point` that the master holds: evaluations need it on every rank. It is not counted, and no worker may use it.
    """

    def check(self) -> None:
        if self.down.compressor.has_state:
            raise ValueError(f"{self.name} has a message for each worker, and '{self.down.compressor.name}' remembers one sequence")

    @abstractmethod
    def answers(self, node: Any, master: Any, ups: Sequence[Compressed], t: Round) -> Sequence[Message]:
        """The master's message to each of the n workers, in worker order; worker i's is drawn in the round `t.to(i)`."""

    @abstractmethod
    def worker_hears(self, node: Any, worker: Any, down: Compressed, t: Round) -> None:
        """Take the master's message over into a worker's own memory. It must not change `node`."""

    @abstractmethod
    def point(self, master: Any) -> Vector:
        """The iterate (d,) that the master holds."""
