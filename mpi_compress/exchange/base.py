"""The exchange within one process, from which those over MPI are derived."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mpi_compress.messages.link import Bytes, Message

T = TypeVar("T")


def block(n: int, parts: int, part: int) -> range:
    """The workers 0 … n − 1 that the part-th of `parts` hosting ranks hosts: contiguous and even; a rank may have none."""
    return range(part * n // parts, (part + 1) * n // parts)


class Taker(Protocol):
    """Takes the reports of workers."""

    def add(self, report: NDArray, /) -> None: ...


class Exchange:
    """Carries the messages of n logical workers. In one process they are encoded and decoded as over MPI.

    `gather` and `broadcast` carry the messages of the experiment, which are counted. The other methods carry evaluations,
    checkpoints and decisions, which are not counted. All ranks call them in the same order.
    """

    is_root = True  # rank 0, which evaluates and records
    has_master = True  # True if this rank computes the master's part: rank 0, or with allgather every rank
    n_ranks = 1
    bytes_received_up = 0  # uplink frames from other ranks

    def __init__(self, n: int, counts_down: bool = True):
        self.n = n  # all logical workers
        self.mine = range(n)  # those hosted here
        self.counts_down = counts_down  # False with allgather: nothing is sent down

    def gather(self, ups: list[Message]) -> list[Message]:
        """Every worker's message in worker order, on ranks that compute the master's part; [] elsewhere."""
        return ups

    def broadcast(self, down: Message | None) -> Message:
        """The master's message, on every rank."""
        assert down is not None
        return down

    def scatter(self, downs: list[Message] | None) -> list[Message]:
        """The master's messages to the workers hosted here, of those to all workers, which ranks with the master's part have."""
        assert downs is not None
        return [downs[i] for i in self.mine]

    def collect(self, reports: Iterable[NDArray], into: Taker | None, dtype: type = np.float64) -> None:
        """Give every worker's report to `into` on rank 0, one by one in worker order."""
        assert into is not None
        for report in reports:
            into.add(report)

    def deal(self, frames: Iterator[Bytes]) -> Iterator[Bytes]:
        """The frames of this rank's workers; rank 0 has one for every worker, in order.

        Rank 0 sends them while it iterates, so it must iterate to the end.
        """
        return frames

    def consult(self, wish: str, decide: Callable[[list[str]], T]) -> T:
        """What rank 0 decides from the wishes of all ranks, on every rank."""
        return decide([wish])

    def agree(self, decision: T) -> T:
        """Rank 0's decision, on every rank."""
        return decision

    def meet(self) -> None:
        """Wait for all ranks."""

    def memory(self, words: int) -> NDArray[np.float64]:
        """Zeros (words,) in memory that all ranks share.

        Raises:
            UserError: the ranks are not all on one host.
        """
        return np.zeros(words)

    def close(self) -> None:
        """Free the MPI objects that this holds."""
