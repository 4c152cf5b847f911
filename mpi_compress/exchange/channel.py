"""Copies of a communicator: one for objects and arrays, and one for the messages that are counted.

A rank that waits in MPI keeps its core busy. If a host has more ranks than cores (it is crowded), waiting ranks would keep the
working ones off the cores, so they sleep until a `bell` rings. Ranks cannot notice this in containers that share cores; there
the variable MPI_COMPRESS_CROWDED = 1 says so (0: not crowded).
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
from mpi_compress.exchange.bell import Bell, Patience, Wait
from mpi_compress.exchange.host import Room, nap, wake_on_time
from mpi_compress.messages.fields import ROOM
from mpi_compress.messages.link import LENGTH_BYTES, Batch

_OBJECT = 99  # tag
_SHORT = 2**14  # bytes; messages up to this travel together with their lengths
_SLEEP = 0.02  # seconds: the longest sleep of a rank that others ring
_LOOKS = 200  # looks at requests before the first look at the clock


class Channel:
    """A copy of a communicator, whose waits yield the core if the host is crowded, and end where there is a `patience`. `bell` is
    that of the communicator, if there is one already; `kept` arrays of large messages are used again."""

    patience: Patience | None = None

    def __init__(self, comm: MPI.Comm, bell: Bell | None = None, kept: int = 2):
        self.comm = comm.Dup()
        self.room = Room(kept)
        self.rank, self.size = comm.rank, comm.size
        self.bell = bell or Bell(comm)
        self.crowded = self.bell.crowded
        wake_on_time()

    def free(self) -> None:
        self.comm.Free()

    def wait(self, *requests: MPI.Request, arriving: bool = False, to: Iterable[int] = ()) -> list[MPI.Status]:
        """Wait until all requests are complete; their statuses.

        Args:
            arriving: their messages are on the way, so that long naps would hold them up.
            to: ranks that receive them. They are rung at each look, for MPI may send only then, and a long message in parts.
        """
        statuses = [MPI.Status() for _ in requests]
        if not (self.crowded or self.patience):
            MPI.Request.Waitall(list(requests), statuses)
        elif requests:
            self._until(partial(MPI.Request.Testall, list(requests), statuses), arriving, to=to)
        return statuses

    def _until(self, asked: Callable[[], T], arriving: bool = False, rung: bool = False, to: Iterable[int] = ()) -> T:
        """What `asked` returns once it is something; `rung`: whoever makes it something rings."""
        for _ in range(0 if self.crowded else _LOOKS):
            if found := asked():
                return found
        wait, begun = Wait(self.patience) if self.patience else None, time.perf_counter()
        while True:
            heard = self.bell.heard()
            for _ in range(self.bell.looks):
                if found := asked():
                    break
            for rank in to:
                self.bell.ring(rank)
            if found:
                return found
            if (wait is not None and wait.look()) or self.crowded:
                self.bell.sleep(heard, _SLEEP if rung else nap(0.0 if arriving else time.perf_counter() - begun))

    def send(self, data: Any, to: Iterable[int], tag: int) -> None:
        """Send one buffer to some ranks: an array, or what else mpi4py takes."""
        to = [*to]
        self.wait(*[self.comm.Isend(data, dest=rank, tag=tag) for rank in to], to=to)

    def receive(self, source: int, tag: int, dtype: type = np.uint8) -> NDArray:
        """Receive the next message from `source`."""
        status = MPI.Status()
        if self.crowded or self.patience:
            message: Any = self._until(
                lambda: self.comm.Improbe(source=source, tag=tag, status=status), rung=self.bell.reaches(source)
            )
        else:
            message = self.comm.Mprobe(source=source, tag=tag, status=status)
        buffer: NDArray[Any] = self.room.take(status.Get_count(MPI.BYTE)).view(dtype)
        self.wait(message.Irecv(buffer), arriving=True)
        self.bell.ring(source)
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
        lengths, data = framed(batch)
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
        rung, statuses, left = all(map(self.bell.reaches, sources)), [MPI.Status() for _ in waited], len(waited)
        while left:
            for i, status in zip(self._some(waited, rung, statuses), statuses, strict=False):
                left -= 1
                start = LENGTH_BYTES * numbers[sources[i]]
                batch = found[sources[i]] = announced(begun[i][:start])
                size = batch.size
                _refuse_other(status, start + (size if size <= _SHORT else 0))
                data = begun[i][start : start + size + ROOM]
                if size > _SHORT:
                    data = self.room.take(size + ROOM)
                    requests.append(self.comm.Irecv(data[:size], sources[i], tag))
                    longer.append(size)
                arrived(data, batch)
        for status, size in zip(self.wait(*requests, arriving=True), longer, strict=True):
            _refuse_other(status, size)
        for source in sources:
            self.bell.ring(source)
        return {source: found[source] for source in sources}

    def _some(self, requests: list[Any], rung: bool, statuses: list[MPI.Status]) -> Sequence[int]:
        """Wait until some requests are complete; which. Their statuses are then the first ones."""
        if self.crowded or self.patience:
            return self._until(partial(MPI.Request.Testsome, requests, statuses), rung=rung) or ()
        return MPI.Request.Waitsome(requests, statuses) or ()


def _refuse_other(came: MPI.Status, announced: int) -> None:
    if (found := came.Get_count(MPI.BYTE)) != announced:
        raise NotAsAnnounced(f"{found} bytes came from rank {came.source}, which has announced {announced}: this MPI loses bytes")
