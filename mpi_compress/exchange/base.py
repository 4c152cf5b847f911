"""The contract of an exchange, and the exchange within one process."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mpi_compress.messages.link import Bytes, Message

T = TypeVar("T")


def block(n: int, parts: int, part: int) -> range:
    """The workers 0 … n − 1 that the part-th of `parts` hosting ranks hosts: contiguous and even; a rank may have none."""
    return range(part * n // parts, (part + 1) * n // parts)


class Exchange(ABC):
    """Carries the messages of n logical workers, whatever ranks host them.

    `gather` and `broadcast` carry the messages of the experiment, which are counted. The other methods carry evaluations,
    checkpoints and decisions, which are not counted. All ranks call them in the same order.
    """

    n: int  # all logical workers
    mine: range  # those hosted here
    is_root: bool  # rank 0, which evaluates and records
    has_master: bool  # True if this rank computes the master's part: rank 0, or with allgather every rank
    n_ranks: int = 1
    counts_down: bool = True  # False with allgather: nothing is sent down
    bytes_received_up: int = 0  # uplink frames from other ranks

    @abstractmethod
    def gather(self, ups: list[Message]) -> list[Message]:
        """Every worker's message in worker order, on ranks that compute the master's part; [] elsewhere."""

    @abstractmethod
    def broadcast(self, down: Message | None) -> Message:
        """The master's message, on every rank."""

    @abstractmethod
    def collect(self, reports: Iterable[NDArray], into: "Taker | None", dtype: type = np.float64) -> None:
        """Give every worker's report to `into` on rank 0, one by one in worker order."""

    @abstractmethod
    def deal(self, frames: Iterator[Bytes]) -> Iterator[Bytes]:
        """The frames of this rank's workers; rank 0 has one for every worker, in order.

        Rank 0 sends them while it iterates, so it must iterate to the end.
        """

    @abstractmethod
    def consult(self, wish: str, decide: Callable[[list[str]], T]) -> T:
        """What rank 0 decides from the wishes of all ranks, on every rank."""

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

    @abstractmethod
    def agree(self, decision: int) -> int:
        """Rank 0's decision (0 … 255), on every rank."""


class Taker(Protocol):
    """Takes the reports of workers."""

    def add(self, report: NDArray, /) -> None: ...


class Local(Exchange):
    """All workers and the master are in this process; messages are encoded and decoded as over MPI."""

    is_root = True
    has_master = True

    def __init__(self, n: int, counts_down: bool = True):
        self.n = n
        self.mine = range(n)
        self.counts_down = counts_down

    def gather(self, ups: list[Message]) -> list[Message]:
        return ups

    def broadcast(self, down: Message | None) -> Message:
        assert down is not None
        return down

    def collect(self, reports: Iterable[NDArray], into: Taker | None, dtype: type = np.float64) -> None:
        assert into is not None
        for report in reports:
            into.add(report)

    def deal(self, frames: Iterator[Bytes]) -> Iterator[Bytes]:
        return frames

    def consult(self, wish: str, decide: Callable[[list[str]], T]) -> T:
        return decide([wish])

    def agree(self, decision: int) -> int:
        return decision
