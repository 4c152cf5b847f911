"""The exchange within one process, from which those over MPI are derived; and messages that go together."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.errors import NotAsAnnounced
from mpi_compress.messages.batch import Batch, new_room, silent
from mpi_compress.messages.fields import ROOM
from mpi_compress.messages.kinds import Bytes

_REFUSED = 2**32 - 1  # the length that stands for a refused message
_NOTHING: Bytes = np.empty(0, np.uint8)


def framed(batch: Batch, room: Callable[[int], Bytes] = new_room) -> tuple[Bytes, Bytes]:
    """The length of each message in 4 bytes, of a refused one `_REFUSED`; and the messages, without the refused ones. `room` gives
    an array of so many bytes for long ones."""
    lengths, data = batch.lengths.astype("<u4"), batch.in_one(room)[: batch.size]
    if batch.refused:
        refused = np.isin(np.arange(len(batch)), [*batch.refused])
        data, lengths = data[~np.repeat(refused, lengths)], np.where(refused, np.uint32(_REFUSED), lengths)
    return lengths.view(np.uint8), data


def announced(frames: Bytes) -> Batch:
    """The messages whose lengths `framed` wrote, without their bytes."""
    lengths = frames.view("<u4").astype(np.int64)
    refused = np.flatnonzero(lengths == _REFUSED)
    lengths[refused] = 0
    return Batch(_NOTHING, lengths.cumsum(), refused=dict.fromkeys(refused.tolist()))


def arrived(data: Bytes, batch: Batch) -> Batch:
    """The messages that were announced; data has them one after another, and `ROOM` bytes more."""
    if batch.size + ROOM != data.size:
        raise NotAsAnnounced(f"{data.size - ROOM} bytes came where {batch.size} were announced: this MPI loses bytes")
    batch.data = data
    return batch


T = TypeVar("T")
W = TypeVar("W")
Report = NDArray | list[NDArray]  # bytes of one worker, or arrays of numbers, which go together


def block(n: int, parts: int, part: int) -> range:
    """The workers 0 … n − 1 that the part-th of `parts` hosting ranks hosts: contiguous and even; a rank may have none."""
    return range(part * n // parts, (part + 1) * n // parts)


class Exchange:
    """Carries the messages of n logical workers. In one process they are encoded and decoded as over MPI. `gather` and `broadcast`
    carry the messages of the experiment, which are counted. The other methods carry evaluations, checkpoints and decisions, which
    are not counted. All ranks call them in the same order."""

    is_root = True  # rank 0, which evaluates and records
    has_master = True  # True if this rank computes the master's part: rank 0, or with allgather every rank
    n_ranks = 1
    hosts: Sequence[int] = (0,)  # the ranks that host workers
    bytes_received_up = 0  # uplink frames from other ranks

    def __init__(self, n: int, counts_down: bool = True):
        self.n = n  # all logical workers
        self.mine = range(n)  # those hosted here, one after another
        self.counts_down = counts_down  # False with allgather: nothing is sent down

    def gather(self, ups: Batch) -> Batch:
        """Every worker's message in worker order, on ranks that compute the master's part; none elsewhere."""
        return ups

    def broadcast(self, down: Batch | None) -> Batch:
        """The master's message, on every rank."""
        assert down is not None
        return down

    def scatter(self, downs: Batch | None) -> Batch:
        """The master's messages to the workers hosted here, of those to all workers, which ranks with the master's part have."""
        assert downs is not None
        return downs.part(self.mine.start, self.mine.stop) if self.mine else silent(0)

    def collect(self, reports: Iterable[Report], dtype: type = np.float64) -> Iterator[Any]:
        """All ranks' reports at rank 0, in worker order, and none elsewhere: they are sent while this is iterated. The first array
        of a report has a row for each worker that it is about; numbers from another rank arrive as floats. A report is valid until
        the next one is asked for."""
        yield from reports

    def scatter_states(self, states: Iterator[Bytes]) -> Iterator[Bytes]:
        """The states of this rank's workers, as bytes; rank 0 has one for every worker, in order. Rank 0 sends them while it
        iterates, so it must iterate to the end."""
        return states

    def allreduce(self, value: W, operation: Callable[[list[W]], T]) -> T:
        """What rank 0 makes of the values of all ranks, on every rank."""
        return operation([value])

    def agree(self, decision: T) -> T:
        """Rank 0's decision, on every rank."""
        return decision

    def barrier(self) -> None:
        """Wait for all ranks."""

    def memory(self, words: int) -> NDArray[np.float64]:
        """Zeros (words,) in memory that all ranks share; UserError if these are not all on one host."""
        return np.zeros(words)

    def close(self) -> None:
        """Free the MPI objects that this holds."""
