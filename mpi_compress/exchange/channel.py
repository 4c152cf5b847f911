"""Copies of a communicator: one for objects and arrays, and one for the messages that are counted.

A rank that waits in MPI keeps its core busy. If a host has more ranks than cores (it is crowded), waiting ranks would keep the
working ones off the cores, so they sleep until a `bell` rings. Ranks cannot notice this in containers that share cores; there
the variable MPI_COMPRESS_CROWDED = 1 says so (0: not crowded).
"""

import pickle
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from struct import Struct
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from mpi_compress.core.errors import NotAsAnnounced
from mpi_compress.exchange.base import T, cut, lengths_of, sum_of
from mpi_compress.exchange.bell import Bell, Patience, Wait
from mpi_compress.exchange.host import Room, nap, wake_on_time
from mpi_compress.messages.link import LENGTH_BYTES, Bytes, Message

_OBJECT = 99  # tag
_AS_BEFORE, _PHASES = 50, 500  # tags of messages that are as long as those before are higher by 50 times their phase's number
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
        elif len(requests) == 1:
            self._until(partial(requests[0].Test, statuses[0]), arriving, to=to)
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


@dataclass
class _Phase:
    """Messages one after another that are as long as those before; sender and receiver count phases alike."""

    size: int = 0  # bytes of the messages before
    number: int = 0

    def tag(self, tag: int) -> int:
        """The tag of messages that are as long as those before."""
        return tag + _AS_BEFORE * (1 + self.number % _PHASES)

    def goes_on(self, size: int) -> bool:
        """True if the next messages are as long as those before; else a new phase begins with them."""
        as_before = size == self.size
        self.size, self.number = size, self.number + (not as_before)
        return as_before


class _Arrival:
    """Receives so many messages at once from a rank, by a request that is used again in each round. Messages that are long, and as
    long as those before, go to memory that waits for them. With each other length a new phase begins: what waits in one phase never
    takes a message of the next, which may be here before it is received. The rank `source` sends them by
    `Messages.send_messages`."""

    def __init__(self, comm: MPI.Comm, source: int, tag: int, number: int):
        self._comm, self._source, self._tag = comm, source, tag
        self._start = LENGTH_BYTES * number
        self._lengths = Struct(f"<{number}I")
        self._first = np.empty(self._start + _SHORT, np.uint8)
        self.request = comm.Recv_init(self._first, source, tag)
        self._phase = _Phase()
        self._ahead: tuple[Bytes, MPI.Request] | None = None

    def begin(self, room: Room) -> None:
        """Be ready to receive the next messages."""
        self.request.Start()
        if self._phase.size > _SHORT:
            data = room.take(self._phase.size)
            self._ahead = data, self._comm.Irecv(data, self._source, self._phase.tag(self._tag))

    def opened(self, room: Room, came: MPI.Status) -> tuple[list[Message], MPI.Request | None, int]:
        """The messages, once `request` is complete; the request for their bytes where these come apart from the lengths, and how
        many they are. `NotAsAnnounced` if other bytes than the lengths say have come."""
        lengths, request = self._lengths.unpack_from(self._first.data), None
        size, ahead, self._ahead = sum_of(lengths), self._ahead, None
        _refuse_other(came, self._start + (size if size <= _SHORT else 0))
        as_before = self._phase.goes_on(size)
        if ahead is not None and not as_before:
            ahead[1].Cancel()
            ahead[1].Wait()
        if size <= _SHORT:
            data = self._first[self._start : self._start + size].copy()
        elif ahead is not None and as_before:
            data, request = ahead
        else:
            data = room.take(size)
            request = self._comm.Irecv(data, self._source, self._tag)
        return cut(data, lengths), request, size


class Messages(Channel):
    """A channel for messages; sender and receiver know how many of them come at once. Messages go as their lengths (4 bytes each),
    and then themselves: together if they are short, else in a second MPI message. Its tag says whether they are as long as those
    before, for then the receiver has asked for them already. One tag from one rank has always the same number of messages."""

    def __init__(self, comm: MPI.Comm, bell: Bell | None, kept: int):
        super().__init__(comm, bell, kept)
        self._sent: dict[tuple[int, int, int], _Phase] = {}  # by receiver, tag, number of messages
        self._arrivals: dict[tuple[int, int, int], _Arrival] = {}  # by source, tag, number of messages

    def free(self) -> None:
        for arrival in self._arrivals.values():
            arrival.request.Free()
        super().free()

    def send_messages(self, messages: Sequence[Message], to: Iterable[int], tag: int) -> None:
        """Send the same messages to some ranks."""
        to = [*to]
        self.wait(*self.begin_to_send(messages, to, tag), to=to)

    def begin_to_send(self, messages: Sequence[Message], to: Iterable[int], tag: int) -> list[MPI.Request]:
        """Send the same messages to some ranks; the requests to wait for."""
        lengths, size = lengths_of(messages)
        isend, requests, is_short = self.comm.Isend, [], size <= _SHORT
        first = b"".join([lengths, *[m.data.data for m in messages]]) if is_short else lengths
        second: Bytes | None = None
        if not is_short:
            each = [m.data for m in messages]
            second = each[0] if len(each) == 1 else np.concatenate(each, out=self.room.take(size))
        for rank in to:
            requests.append(isend(first, rank, tag))
            phase = self._sent.setdefault((rank, tag, len(messages)), _Phase())
            as_before = phase.goes_on(size)
            if second is not None:
                requests.append(isend(second, rank, phase.tag(tag) if as_before else tag))
        return requests

    def receive_messages(self, numbers: Mapping[int, int], tag: int) -> dict[int, list[Message]]:
        """The next messages from some ranks, of each as many as `numbers` says; NotAsAnnounced if other bytes come than their
        lengths say."""
        try:
            return self._received(numbers, tag)
        except MPI.Exception as error:
            if error.Get_error_class() not in (MPI.ERR_TRUNCATE, MPI.ERR_IN_STATUS):
                raise
            said = f"more bytes came from one of ranks {[*numbers]} than it has announced: this MPI mixes messages"
            raise NotAsAnnounced(said) from error

    def _received(self, numbers: Mapping[int, int], tag: int) -> dict[int, list[Message]]:
        arrivals = [self._arrival(source, tag, number) for source, number in numbers.items()]
        for arrival in arrivals:
            arrival.begin(self.room)
        sources, waited = [*numbers], [arrival.request for arrival in arrivals]
        rung = all(map(self.bell.reaches, sources))
        found: dict[int, list[Message]] = {}
        requests, sizes = [], []
        statuses = [MPI.Status() for _ in waited]
        while len(found) < len(sources):
            for i, status in zip(self._some(waited, rung, statuses), statuses, strict=False):
                found[sources[i]], request, size = arrivals[i].opened(self.room, status)
                if request is not None:
                    requests.append(request)
                    sizes.append(size)
        for status, size in zip(self.wait(*requests, arriving=True), sizes, strict=True):
            _refuse_other(status, size)
        for source in sources:
            self.bell.ring(source)
        return found

    def _some(self, requests: list[Any], rung: bool, statuses: list[MPI.Status]) -> Sequence[int]:
        """Wait until some requests are complete; which. Their statuses are then the first ones."""
        if self.crowded or self.patience:
            return self._until(partial(MPI.Request.Testsome, requests, statuses), rung=rung) or ()
        return MPI.Request.Waitsome(requests, statuses) or ()

    def _arrival(self, source: int, tag: int, number: int) -> _Arrival:
        key = source, tag, number
        if key not in self._arrivals:
            self._arrivals[key] = _Arrival(self.comm, *key)
        return self._arrivals[key]


def _refuse_other(came: MPI.Status, announced: int) -> None:
    if (found := came.Get_count(MPI.BYTE)) != announced:
        raise NotAsAnnounced(f"{found} bytes came from rank {came.source}, which has announced {announced}: this MPI loses bytes")
