"""The exchanges over MPI. Only this module, `channel`, `futexes`, `patience` and `ranks` use MPI.

Messages have a communicator of their own, on which everything is counted: the uplink between ranks is exactly the frames (4-byte
length + bytes) of the workers of other ranks. Evaluations and decisions use another communicator.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from mpi_compress.core.errors import UserError
from mpi_compress.exchange.base import Exchange, Report, T, W, announced, arrived, block, framed
from mpi_compress.exchange.channel import Channel, Messages
from mpi_compress.exchange.futexes import Futexes
from mpi_compress.exchange.host import Buffers
from mpi_compress.exchange.patience import Patience
from mpi_compress.messages.batch import LENGTH_BYTES, Batch, silent, together
from mpi_compress.messages.fields import ROOM
from mpi_compress.messages.kinds import Bytes

UP, DOWN, DOWN_TO_EACH, REPORT, STATE = range(1, 6)  # tags


class _OverMPI(Exchange):
    """The base of the MPI exchanges: which rank hosts which workers, and what is not counted. Without `futexes` all ranks make
    theirs together."""

    def __init__(
        self, comm: MPI.Comm, n: int, hosts: Sequence[int], patience: float, futexes: Futexes | None, counts_down: bool = True
    ):
        super().__init__(n, counts_down)
        self.n_ranks = comm.size
        self.is_root = comm.rank == 0
        self.hosts = hosts
        self._control = Channel(comm, futexes)
        self._data = Messages(comm, self._control.futexes, kept=comm.size + 1)
        if patience:
            self._control.patience = self._data.patience = Patience(self._control.comm, patience)
        self._window: Any = None  # the window of the shared memory
        self._blocks = {rank: block(n, len(hosts), part) for part, rank in enumerate(hosts)}
        self.mine = self._blocks.get(comm.rank, range(0))

    def barrier(self) -> None:
        self._control.barrier()

    def memory(self, words: int) -> NDArray[np.float64]:
        host: Any = self._control.comm.Split_type(MPI.COMM_TYPE_SHARED)
        if host.size < self.n_ranks:
            raise UserError(
                f"one memory for all {self.n_ranks} ranks is needed, and only {host.size} are on one host: start all on one"
            )
        self._window = MPI.Win.Allocate_shared(8 * words if self.is_root else 0, 8, comm=host)
        host.Free()
        held = np.frombuffer(self._window.Shared_query(0)[0], dtype=np.float64, count=words)
        if self.is_root:
            held[:] = 0.0
        self.barrier()
        return held

    def close(self) -> None:
        if self._window is not None:
            self._window.Free()
        self._data.free()
        self._control.free()

    def collect(self, reports: Iterable[Report], dtype: type = np.float64) -> Iterator[Any]:
        if not self.is_root:
            for report in reports:
                self._control.send(_joined(report, self._control.buffers) if isinstance(report, list) else report, [0], REPORT)
            return
        for rank, workers in self._blocks.items():
            if rank == 0:
                yield from reports
            left = len(workers) if rank else 0
            while left:
                message = self._control.receive(rank, REPORT, dtype)
                report = _parted(message) if dtype is np.float64 else message
                left -= len(report[0]) if isinstance(report, list) else 1
                yield report

    def scatter_states(self, states: Iterator[Bytes]) -> Iterator[Bytes]:
        if not self.is_root:
            for _ in self.mine:
                yield self._control.receive(0, STATE)
            return
        for rank, workers in self._blocks.items():
            for _ in workers:
                state = next(states)
                if rank == 0:
                    yield state
                else:
                    self._control.send(state, [rank], STATE)

    def allreduce(self, value: W, operation: Callable[[list[W]], T]) -> T:
        values = self._control.to_root(value)
        return self._control.share(operation(values) if self.is_root else None)

    def agree(self, decision: T) -> T:
        return self._control.share(decision)


def _joined(arrays: list[NDArray], buffers: Buffers) -> NDArray[np.float64]:
    """Arrays of numbers in one, each behind its shape."""
    parts = [part for array in arrays for part in ([array.ndim, *array.shape], array.ravel())]
    return np.concatenate(parts, out=buffers.take(8 * sum(map(len, parts))).view(np.float64))


def _parted(joined: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    arrays, at = [], 0
    while at < joined.size:
        start = at + 1 + int(joined[at])
        shape = joined[at + 1 : start].astype(int)
        at = start + int(np.prod(shape))
        arrays.append(joined[start:at].reshape(shape))
    return arrays


class PointToPoint(_OverMPI):
    """Hosting ranks send to rank 0, which receives without blocking and answers each rank. Rank 0 hosts workers only if
    `master_hosts`. The frames of a rank's workers share one MPI message."""

    def __init__(self, comm: MPI.Comm, n: int, master_hosts: bool, patience: float = 0.0, futexes: Futexes | None = None):
        super().__init__(comm, n, range(comm.size) if master_hosts else range(1, comm.size), patience, futexes)
        self.has_master = self.is_root
        self._senders = {rank: len(workers) for rank, workers in self._blocks.items() if workers and rank != 0}

    def gather(self, ups: Batch) -> Batch:
        if not self.is_root:
            if len(ups):
                self._data.send_messages(ups, [0], UP)
            return silent(0)
        arrived = self._data.receive_messages(self._senders, UP)
        self.bytes_received_up += sum(LENGTH_BYTES * len(batch) + batch.size for batch in arrived.values())
        return together([ups, *arrived.values()] if len(ups) else [*arrived.values()])

    def broadcast(self, down: Batch | None) -> Batch:
        if down is None:
            return replace(self._data.receive_messages({0: 1}, DOWN)[0], one=True)
        self._data.send_messages(down, range(1, self.n_ranks), DOWN)
        return down

    def scatter(self, downs: Batch | None) -> Batch:
        if downs is None:
            return self._data.receive_messages({0: len(self.mine)}, DOWN_TO_EACH)[0] if self.mine else silent(0)
        for rank in self._senders:
            workers = self._blocks[rank]
            self._data.send_messages(downs.part(workers.start, workers.stop), [rank], DOWN_TO_EACH)
        return super().scatter(downs)


class AllGather(_OverMPI):
    """Every rank gets every worker's message and computes the master's part: nothing is sent down."""

    def __init__(self, comm: MPI.Comm, n: int, patience: float = 0.0, futexes: Futexes | None = None):
        super().__init__(comm, n, range(comm.size), patience, futexes, counts_down=False)
        self._rank = comm.rank

    def gather(self, ups: Batch) -> Batch:
        mine = np.concatenate(framed(ups, self._data.buffers.take))
        sizes = np.empty(self.n_ranks, dtype=np.int64)
        self._data.wait(self._data.comm.Iallgather(np.array([mine.size], dtype=np.int64), sizes))
        starts = np.concatenate([[0], np.cumsum(sizes)])
        everything = np.zeros(starts[-1] + ROOM, dtype=np.uint8)
        self._data.wait(self._data.comm.Iallgatherv(mine, [everything[: starts[-1]], sizes, starts[:-1], MPI.BYTE]))
        self.bytes_received_up += int(starts[-1]) - mine.size
        batches = []
        for rank, workers in self._blocks.items():
            first = int(starts[rank]) + LENGTH_BYTES * len(workers)
            found = announced(everything[starts[rank] : first])
            batches.append(ups if rank == self._rank else arrived(everything[first : starts[rank + 1] + ROOM], found))
        return together(batches)
