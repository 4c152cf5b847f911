"""The contract of an exchange, and the one for a single process."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mpi_compress.messages.link import Bytes, Message

T = TypeVar("T")


def block(n: int, parts: int, part: int) -> range:
    """The workers that the part-th of `parts` hosting ranks hosts: contiguous, even; some ranks may have none."""
    return range(part * n // parts, (part + 1) * n // parts)


class Exchange(ABC):
    """Carries the messages of n logical workers, whatever ranks host them.

    Uplink and downlink messages are the experiment. `collect`, `deal`, `consult` and `agree` are not: they carry evaluations,
    checkpoints and decisions, by other means, and are in no bit count.
    """

    n: int  # logical workers in all
    mine: range  # those hosted here
    is_root: bool  # rank 0, which evaluates and records
    has_master: bool  # whether the master's part is computed here: rank 0, or by allgather every rank
    n_ranks: int = 1
    counts_down: bool = True  # whether there are messages down; by allgather there are none
    bytes_received_up: int = 0  # what came from other ranks as uplink

    @abstractmethod
    def gather(self, ups: list[Message]) -> list[Message]:
        """Every worker's message in worker order, where the master is; [] elsewhere."""

    @abstractmethod
    def broadcast(self, down: Message | None) -> Message:
        """The master's message, everywhere."""

    @abstractmethod
    def collect(self, reports: Iterable[NDArray], into: "Taker | None", dtype: type = np.float64) -> None:
        """Give every worker's report to `into` at rank 0, one by one in worker order, whatever rank it comes from."""

    @abstractmethod
    def deal(self, frames: Iterator[Bytes]) -> Iterator[Bytes]:
        """The other way round: rank 0 has a frame for every worker in order; those of the workers here.

        Rank 0 sends as it goes: it must go through to the end.
        """

    @abstractmethod
    def consult(self, wish: str, decide: Callable[[list[str]], T]) -> T:
        """What rank 0 decides, knowing the wishes of all ranks; on every rank."""

    def meet(self) -> None:
        """Wait until every rank is here."""

    def memory(self, words: int) -> NDArray[np.float64]:
        """So many zeros (words,) that all ranks share.

        Raises:
            UserError: the ranks are not all on one host.
        """
        return np.zeros(words)

    def close(self) -> None:
        """Give back what it holds of MPI."""

    @abstractmethod
    def agree(self, decision: int) -> int:
        """Rank 0's decision (0 … 255), on every rank."""


class Taker(Protocol):
    """Takes what workers report."""

    def add(self, report: NDArray, /) -> None: ...


class Local(Exchange):
    """All workers and the master in this process; messages are encoded and decoded as over MPI."""

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
