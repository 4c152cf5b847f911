"""Copies of a communicator: one for objects and arrays, and one for the messages that are counted.

A rank that waits in MPI keeps its core busy. If a host has more ranks than cores (it is crowded), waiting ranks would keep the
working ones off the cores, so they sleep until another rank wakes them. Ranks cannot notice this in containers that share cores;
there the variable MPI_COMPRESS_CROWDED = 1 says so (0: not crowded).
"""

import pickle
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from mpi_compress.core.errors import NotAsAnnounced
from mpi_compress.exchange.base import T, announced, arrived, framed
from mpi_compress.exchange.futexes import Futexes
from mpi_compress.exchange.host import Buffers, nap, wake_on_time
from mpi_compress.exchange.patience import Patience, Wait
from mpi_compress.messages.batch import LENGTH_BYTES, Batch
from mpi_compress.messages.fields import ROOM

_OBJECT = 99  # tag
_SHORT = 2**14  # bytes; messages up to this travel together with their lengths
_SLEEP = 0.02  # seconds: the longest sleep of a rank that others ring
_LOOKS = 200  # looks at requests before the first look at the clock


class Channel:
    """A copy of a communicator, whose waits yield the core if the host is crowded, and end where there is a `patience`. `futexes`
    are those of the communicator, if there are some already; `kept` arrays of large messages are used again."""

    patience: Patience | None = None

    def __init__(self, comm: MPI.Comm, futexes: Futexes | None = None, kept: int = 2):
        self.comm = comm.Dup()
        self.buffers = Buffers(kept)
        self.rank, self.size = comm.rank, comm.size
        self.futexes = futexes or Futexes(comm)
        self.crowded = self.futexes.crowded
        wake_on_time()

    def free(self) -> None:
        self.comm.Free()

    def wait(self, *requests: MPI.Request, arriving: bool = False, to: Iterable[int] = ()) -> list[MPI.Status]:
        """Wait until all requests are complete; their statuses.

        Args:
            arriving: their messages are on the way, so that long naps would hold them up.
            to: ranks that receive them. They are woken at each look, for MPI may send only then, and a long message in parts.
        """
        statuses = [MPI.Status() for _ in requests]
        if not (self.crowded or self.patience):
            MPI.Request.Waitall(list(requests), statuses)
        elif requests:
            self._until(partial(MPI.Request.Testall, list(requests), statuses), arriving, to=to)
        return statuses

    def _until(self, asked: Callable[[], T], arriving: bool = False, woken: bool = False, to: Iterable[int] = ()) -> T:
        """What `asked` returns once it is something; `woken`: whoever makes it something wakes this rank."""
        for _ in range(0 if self.crowded else _LOOKS):
            if found := asked():
                return found
        wait, begun = Wait(self.patience) if self.patience else None, time.perf_counter()
        while True:
            value = self.futexes.value()
            for _ in range(self.futexes.looks):
                if found := asked():
                    break
            for rank in to:
                self.futexes.wake(rank)
            if found:
                return found
            if (wait is not None and wait.look()) or self.crowded:
                self.futexes.wait(value, _SLEEP if woken else nap(0.0 if arriving else time.perf_counter() - begun))

    def send(self, data: Any, to: Iterable[int], tag: int) -> None:
        """Send one buffer to some ranks: an array, or what else mpi4py takes."""
        to = [*to]
        self.wait(*[self.comm.Isend(data, dest=rank, tag=tag) for rank in to], to=to)

    def receive(self, source: int, tag: int, dtype: type = np.uint8) -> NDArray:
        """Receive the next message from `source`."""
        status = MPI.Status()
        if self.crowded or self.patience:
            message: Any = self._until(
                lambda: self.comm.Improbe(source=source, tag=tag, status=status), woken=self.futexes.reaches(source)
            )
        else:
            message = self.comm.Mprobe(source=source, tag=tag, status=status)
        buffer: NDArray[Any] = self.buffers.take(status.Get_count(MPI.BYTE)).view(dtype)
        self.wait(message.Irecv(buffer), arriving=True)
        self.futexes.wake(source)
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


class Messages(Channel):
    """A channel for messages; sender and receiver know how many of them come at once. Messages go as their lengths (4 bytes each),
    and then themselves: together if they are short, else in a second MPI message."""

    def send_messages(self, batch: Batch, to: Iterable[int], tag: int) -> None:
        """Send the same messages to some ranks."""
        to = [*to]
        self.wait(*self.begin_to_send(batch, to, tag), to=to)

    def begin_to_send(self, batch: Batch, to: Iterable[int], tag: int) -> list[MPI.Request]:
        """Send the same messages to some ranks; the requests to wait for."""
        lengths, data = framed(batch, self.buffers.take)
        parts = [np.concatenate([lengths, data])] if data.size <= _SHORT else [lengths, data]
        return [self.comm.Isend(part, rank, tag) for rank in to for part in parts]

    def receive_messages(self, numbers: Mapping[int, int], tag: int) -> dict[int, Batch]:
        """The next messages from some ranks, of each as many as `numbers` says; NotAsAnnounced if other bytes come than their
        lengths say."""
        try:
            return self._received(numbers, tag)
        except MPI.Exception as error:
            if error.Get_error_class() not in (MPI.ERR_TRUNCATE, MPI.ERR_IN_STATUS):
                raise
            said = f"more bytes came from one of ranks {[*numbers]} than it has announced: this MPI mixes messages"
            raise NotAsAnnounced(said) from error

    def _received(self, numbers: Mapping[int, int], tag: int) -> dict[int, Batch]:
        sources, found, requests, longer = [*numbers], dict[int, Batch](), [], []
        begun = [np.empty(LENGTH_BYTES * number + _SHORT + ROOM, np.uint8) for number in numbers.values()]
        waited = [self.comm.Irecv(first[: first.size - ROOM], source, tag) for first, source in zip(begun, sources, strict=True)]
        woken, statuses, left = all(map(self.futexes.reaches, sources)), [MPI.Status() for _ in waited], len(waited)
        while left:
            for i, status in zip(self._some(waited, woken, statuses), statuses, strict=False):
                left -= 1
                start = LENGTH_BYTES * numbers[sources[i]]
                batch = found[sources[i]] = announced(begun[i][:start])
                size = batch.size
                _refuse_other(status, start + (size if size <= _SHORT else 0))
                data = begun[i][start : start + size + ROOM]
                if size > _SHORT:
                    data = self.buffers.take(size + ROOM)
                    requests.append(self.comm.Irecv(data[:size], sources[i], tag))
                    longer.append(size)
                arrived(data, batch)
        for status, size in zip(self.wait(*requests, arriving=True), longer, strict=True):
            _refuse_other(status, size)
        for source in sources:
            self.futexes.wake(source)
        return {source: found[source] for source in sources}

    def _some(self, requests: list[Any], woken: bool, statuses: list[MPI.Status]) -> Sequence[int]:
        """Wait until some requests are complete; which. Their statuses are then the first ones."""
        if self.crowded or self.patience:
            return self._until(partial(MPI.Request.Testsome, requests, statuses), woken=woken) or ()
        return MPI.Request.Waitsome(requests, statuses) or ()


def _refuse_other(came: MPI.Status, announced: int) -> None:
    if (found := came.Get_count(MPI.BYTE)) != announced:
        raise NotAsAnnounced(f"{found} bytes came from rank {came.source}, which has announced {announced}: this MPI loses bytes")
