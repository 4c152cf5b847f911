"""The exchanges over MPI. Only this module, `patience` and `ranks` use MPI.

Uplink and downlink have a communicator of their own, and every frame on it is counted: the uplink between ranks is exactly the
frames (4-byte length + bytes) of the workers of other ranks. Evaluations and decisions use another communicator.

A rank that waits in MPI keeps its core busy. If a host has more ranks than cores (it is crowded), waiting ranks would keep the
working ones off the cores, so they nap between two looks (`rest`). Ranks cannot notice this in containers that share cores; there
the variable MPI_COMPRESS_CROWDED = 1 says so (0: not crowded).
"""

import os
import pickle
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from mpi_compress.core.errors import UserError
from mpi_compress.exchange.base import Exchange, T, Taker, block
from mpi_compress.exchange.host import Room, cores, rest, wake_on_time
from mpi_compress.exchange.patience import Patience
from mpi_compress.messages.link import LENGTH_BYTES, REFUSED, Bytes, Message

_UP, _DOWN, _REPORT, _OBJECT, _STATE = range(1, 6)
_NOTHING = np.empty(0, dtype=np.uint8)
_LENGTH = struct.Struct("<I")
_REFUSED = 2**32 - 1  # in place of a length
_SHORT = 2**12  # bytes of a message that MPI sends without asking whether the receiver is ready


class Channel:
    """A copy of a communicator, whose waits yield the core if the host is crowded, and end where there is a `patience`."""

    patience: Patience | None = None

    def __init__(self, comm: MPI.Comm, crowded: bool | None = None, kept: int = 0):
        self.comm = comm.Dup()
        self.rank, self.size = comm.rank, comm.size
        if crowded is None and os.environ.get("MPI_COMPRESS_CROWDED") in ("0", "1"):
            crowded = os.environ["MPI_COMPRESS_CROWDED"] == "1"
        if crowded is None:
            host = comm.Split_type(MPI.COMM_TYPE_SHARED)
            crowded = host.size > cores()
            host.Free()
        self.crowded = crowded
        self._room = Room(kept)  # of its messages' memory, so many arrays
        wake_on_time()

    def free(self) -> None:
        self.comm.Free()

    def wait(self, *requests: MPI.Request, arriving: bool = False) -> None:
        """Wait until all requests are complete; `arriving`: their messages are on the way, so that long naps would hold them up."""
        pending = [request for request in requests if request != MPI.REQUEST_NULL]
        if not pending:
            return
        if self.crowded or self.patience:
            self._until(lambda: MPI.Request.Testall(pending), arriving)
        else:
            MPI.Request.Waitall(pending)

    def _until(self, asked: Callable[[], T], arriving: bool = False) -> T:
        """What `asked` returns once it is something."""
        if found := asked():
            return found
        wait, begun = self.patience.begin() if self.patience else None, time.perf_counter()
        while not found:
            if (wait is not None and wait.look()) or self.crowded:
                rest(0.0 if arriving else time.perf_counter() - begun)
            found = asked()
        return found

    def send(self, data: Any, to: Iterable[int], tag: int) -> None:
        """Send one buffer to some ranks: an array, or what else mpi4py takes."""
        self.wait(*[self.comm.Isend(data, dest=rank, tag=tag) for rank in to])

    def send_frames(self, messages: Sequence[Message], to: Iterable[int], tag: int) -> None:
        """Send messages as one block of bytes to some ranks."""
        self.send(self.together(messages), to, tag)

    def together(self, messages: Sequence[Message]) -> Bytes:
        """One block of bytes: each message after its length in 4 bytes; a refused one is the length `_REFUSED` alone."""
        block_of_bytes = self._room.take(sum(LENGTH_BYTES + m.data.size for m in messages))
        at = 0
        for m in messages:
            start = at + LENGTH_BYTES
            _LENGTH.pack_into(block_of_bytes.data, at, _REFUSED if m.is_refused else m.data.size)
            at = start + m.data.size
            block_of_bytes[start:at] = m.data
        return block_of_bytes

    def expect(self, source: int, tag: int, dtype: type = np.uint8) -> tuple[int, NDArray, MPI.Request]:
        """Begin to receive the next message: its sender, the buffer it goes to, and the request to wait for."""
        status = MPI.Status()
        if self.crowded or self.patience:
            message: Any = self._until(lambda: self.comm.Improbe(source=source, tag=tag, status=status))
        else:
            message = self.comm.Mprobe(source=source, tag=tag, status=status)
        buffer: NDArray[Any] = self._room.take(status.Get_count(MPI.BYTE)).view(dtype)
        if buffer.nbytes < _SHORT:  # it has arrived
            message.Recv(buffer)
            return status.Get_source(), buffer, MPI.REQUEST_NULL
        return status.Get_source(), buffer, message.Irecv(buffer)

    def receive(self, source: int, tag: int, dtype: type = np.uint8) -> NDArray:
        """Receive the next message from `source`."""
        _, buffer, request = self.expect(source, tag, dtype)
        self.wait(request, arriving=True)
        return buffer

    def share(self, value: Any) -> Any:
        """Rank 0's object, on every rank."""
        if self.rank == 0:
            self.send(np.frombuffer(pickle.dumps(value), dtype=np.uint8), range(1, self.size), _OBJECT)
            return value
        return pickle.loads(self.receive(0, _OBJECT).tobytes())

    def to_root(self, value: Any) -> list[Any]:
        """Every rank's object, in order of ranks, at rank 0; [] elsewhere."""
        if self.rank != 0:
            self.send(np.frombuffer(pickle.dumps(value), dtype=np.uint8), [0], _OBJECT)
            return []
        return [value, *(pickle.loads(self.receive(rank, _OBJECT).tobytes()) for rank in range(1, self.size))]

    def barrier(self) -> None:
        self.wait(self.comm.Ibarrier())


class _OverMPI(Exchange):
    """The base of both MPI exchanges: which rank hosts which workers, and the methods that are not counted.

    Args:
        crowded: True if ranks of this host share cores; None: it is found out, which all ranks do together.
    """

    def __init__(
        self, comm: MPI.Comm, n: int, hosts: Sequence[int], patience: float, crowded: bool | None, counts_down: bool = True
    ):
        super().__init__(n, counts_down)
        self.n_ranks = comm.size
        self.is_root = comm.rank == 0
        self._control = Channel(comm, crowded)
        self._data = Channel(comm, self._control.crowded, kept=comm.size + 1)
        if patience:
            self._control.patience = self._data.patience = Patience(self._control.comm, patience)
        self._window: Any = None  # of the shared memory
        self._blocks = {rank: block(n, len(hosts), part) for part, rank in enumerate(hosts)}
        self.mine = self._blocks.get(comm.rank, range(0))

    def meet(self) -> None:
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
        self.meet()
        return held

    def close(self) -> None:
        if self._window is not None:
            self._window.Free()
        self._data.free()
        self._control.free()

    def collect(self, reports: Iterable[NDArray], into: Taker | None, dtype: type = np.float64) -> None:
        if not self.is_root:
            for report in reports:
                self._control.send(report, [0], _REPORT)
            return
        assert into is not None
        own = iter(reports)
        for rank, workers in self._blocks.items():
            for _ in workers:
                into.add(next(own) if rank == 0 else self._control.receive(rank, _REPORT, dtype))

    def deal(self, frames: Iterator[Bytes]) -> Iterator[Bytes]:
        if not self.is_root:
            for _ in self.mine:
                yield self._control.receive(0, _STATE)
            return
        for rank, workers in self._blocks.items():
            for _ in workers:
                frame = next(frames)
                if rank == 0:
                    yield frame
                else:
                    self._control.send(frame, [rank], _STATE)

    def consult(self, wish: str, decide: Callable[[list[str]], T]) -> T:
        wishes = self._control.to_root(wish)
        return self._control.share(decide(wishes) if self.is_root else None)

    def agree(self, decision: T) -> T:
        return self._control.share(decision)


class PointToPoint(_OverMPI):
    """Hosting ranks send to rank 0, which receives without blocking and answers each rank.

    Rank 0 hosts workers only if `master_hosts`. The frames of a rank's workers share one MPI message.
    """

    def __init__(self, comm: MPI.Comm, n: int, master_hosts: bool, patience: float = 0.0, crowded: bool | None = None):
        super().__init__(comm, n, range(comm.size) if master_hosts else range(1, comm.size), patience, crowded)
        self.has_master = self.is_root
        self._senders = [rank for rank, workers in self._blocks.items() if workers and rank != 0]

    def gather(self, ups: list[Message]) -> list[Message]:
        if not self.is_root:
            if ups:
                self._data.send_frames(ups, [0], _UP)
            return []
        arriving = [self._data.expect(MPI.ANY_SOURCE, _UP) for _ in self._senders]
        self._data.wait(*[request for _, _, request in arriving], arriving=True)
        buffers = {source: buffer for source, buffer, _ in arriving}
        self.bytes_received_up += sum(buffer.size for buffer in buffers.values())
        return [m for rank in self._blocks for m in (ups if rank == 0 else unframed(buffers.get(rank, _NOTHING)))]

    def broadcast(self, down: Message | None) -> Message:
        if down is None:
            return unframed(self._data.receive(0, _DOWN))[0]
        self._data.send_frames([down], range(1, self.n_ranks), _DOWN)
        return down

    def scatter(self, downs: list[Message] | None) -> list[Message]:
        if downs is None:
            return unframed(self._data.receive(0, _DOWN)) if self.mine else []
        for rank in self._senders:
            self._data.send_frames([downs[i] for i in self._blocks[rank]], [rank], _DOWN)
        return super().scatter(downs)


class AllGather(_OverMPI):
    """Every rank gets every worker's message and computes the master's part: nothing is sent down."""

    def __init__(self, comm: MPI.Comm, n: int, patience: float = 0.0, crowded: bool | None = None):
        super().__init__(comm, n, range(comm.size), patience, crowded, counts_down=False)
        self._rank = comm.rank

    def gather(self, ups: list[Message]) -> list[Message]:
        mine = self._data.together(ups)
        sizes = np.empty(self.n_ranks, dtype=np.int64)
        self._data.wait(self._data.comm.Iallgather(np.array([mine.size], dtype=np.int64), sizes))
        starts = np.concatenate([[0], np.cumsum(sizes)])
        everything = np.empty(starts[-1], dtype=np.uint8)
        self._data.wait(self._data.comm.Iallgatherv(mine, [everything, sizes, starts[:-1], MPI.BYTE]))
        self.bytes_received_up += everything.size - mine.size
        return [
            message
            for rank in self._blocks
            for message in (ups if rank == self._rank else unframed(everything[starts[rank] : starts[rank + 1]]))
        ]


def unframed(block_of_bytes: Bytes) -> list[Message]:
    """The messages of a block."""
    messages: list[Message] = []
    at = 0
    while at < block_of_bytes.size:
        start = at + LENGTH_BYTES
        size = int.from_bytes(block_of_bytes[at:start].tobytes(), "little")
        at = start if size == _REFUSED else start + size
        messages.append(Message(REFUSED if size == _REFUSED else block_of_bytes[start:at]))
    return messages
