"""How ranks wait for each other, and for how long.

Waiting in MPI keeps a core busy. So ranks of a host that share cores sleep, each on a word of shared memory, until another rank
of the host rings. A rank that sends rings its receiver, and one that has received rings its sender, which a long message waits for.
Whoever sleeps looks again by itself after a while: what comes from another host, or from within MPI, rings no bell. Where the
system has no futex, ranks nap; by other MPIs than MPICH, too: rounds of 5 ranks on 2 cores took longer by Open MPI.

A rank that has waited for too long calls the roll. Ranks that wait, for whatever, answer within a second; one that hangs, is
stopped, or computes does not. A rank counts only the time in which it runs itself: a job that SLURM suspends as a whole goes on
when it is resumed.
"""

import ctypes
import mmap
import os
import platform
import sys
import tempfile
import time
from contextlib import suppress
from datetime import datetime

import numpy as np
from mpi4py import MPI

from mpi_compress.core.errors import NotAnswering
from mpi_compress.exchange.host import own_cores

_FUTEX = {"x86_64": 202, "aarch64": 98}.get(platform.machine(), 0) if sys.platform == "linux" else 0  # the system call's number
_WAIT, _WAKE = 0, 1
_LINE = 64  # bytes between two words, which processors share as a whole


class _Time(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class Bell:
    """The bells of the ranks of a communicator that are on this host, all of which make it together. `crowded` is True if they
    share cores: if they are more than the cores, or if MPI_COMPRESS_CROWDED = 1 says so (0: they do not)."""

    def __init__(self, comm: MPI.Comm):
        host = comm.Split_type(MPI.COMM_TYPE_SHARED)
        said = os.environ.get("MPI_COMPRESS_CROWDED")
        cores = set().union(*host.allgather(own_cores()))  # a launcher may bind each rank to a core of its own
        self.crowded = host.allreduce(said == "1" if said in ("0", "1") else host.size > len(cores), MPI.MAX)
        self._words: dict[int, ctypes.c_int] = {}  # by rank of `comm`
        if self.crowded and host.size > 1 and MPI.get_vendor()[0] == "MPICH" and (memory := _shared(host)) is not None:
            here = MPI.Group.Translate_ranks(host.Get_group(), list(range(host.size)), comm.Get_group())
            self._words = {rank: ctypes.c_int.from_buffer(memory, _LINE * i) for i, rank in enumerate(here)}
            self._own = self._words[comm.rank]
            self._call = ctypes.CDLL(None).syscall
        self.looks = 2 * len(self._words) or 1  # before a sleep: MPICH may take in only one message at each
        host.Free()

    def reaches(self, rank: int) -> bool:
        """True if that rank rings here as it sends."""
        return rank in self._words

    def ring(self, rank: int) -> None:
        """Wake a rank, if it sleeps on this host."""
        if (word := self._words.get(rank)) is not None:
            word.value += 1  # who rings at the same moment may write the same number, and wakes, too
            self._call(_FUTEX, ctypes.byref(word), _WAKE, 1, None, None, 0)

    def heard(self) -> int:
        """The number to give to `sleep`; it is taken before looking at what is waited for."""
        return self._own.value if self._words else 0

    def sleep(self, heard: int, seconds: float) -> None:
        """Leave the core to others until somebody rings, or did so since `heard` was taken, or for so long."""
        if not self._words:
            time.sleep(seconds)
            return
        limit = _Time(int(seconds), int(1e9 * (seconds % 1.0)))
        self._call(_FUTEX, ctypes.byref(self._own), _WAIT, heard, ctypes.byref(limit), None, 0)


def _shared(host: MPI.Comm) -> mmap.mmap | None:
    """Zeros that all ranks of a host share, a line for each; None where that is not possible for all of them."""
    path, memory = "", None
    if host.rank == 0 and _FUTEX:
        with suppress(OSError), tempfile.NamedTemporaryFile(dir="/dev/shm", delete=False) as file:
            path = file.name
            file.truncate(_LINE * host.size)
    path = host.bcast(path)
    with suppress(OSError), open(path, "r+b") as file:
        memory = mmap.mmap(file.fileno(), _LINE * host.size)
    everywhere = host.allreduce(memory is not None, MPI.MIN)
    if host.rank == 0 and path:
        os.unlink(path)
    return memory if everywhere else None


_CALL, _PRESENT = 101, 102  # tags
_ROLL_SECONDS = (3.0, 10.0)  # for answers to a roll call: at least, and at most; else as long as the patience
_LOOK_SECONDS = 1.0  # between two looks whether another rank calls the roll
_LONGEST_STEP = 5.0  # between two looks at the clock: longer means that this process itself was stopped


class Patience:
    """Ends waits of a communicator's ranks for each other that are longer than so many seconds; tags 101 and 102 are used here
    alone."""

    def __init__(self, comm: MPI.Comm, seconds: float):
        self._comm, self.seconds = comm, seconds
        self._others = [rank for rank in range(comm.size) if rank != comm.rank]
        self._calls = 0  # roll calls of this rank
        self._sent: list[MPI.Request] = []

    def _arrived(self, tag: int) -> tuple[int, int] | None:
        """The sender of a number that has arrived, and the number; None if there is none."""
        status, number = MPI.Status(), np.empty(1, dtype=np.int64)
        if not self._comm.Iprobe(source=MPI.ANY_SOURCE, tag=tag, status=status):
            return None
        self._comm.Recv(number, source=status.Get_source(), tag=tag)
        return status.Get_source(), int(number[0])

    def _send(self, number: int, to: int, tag: int) -> None:
        self._sent.append(self._comm.Isend(np.array([number], dtype=np.int64), dest=to, tag=tag))

    def answer(self) -> None:
        """Answer the roll calls of other ranks."""
        while call := self._arrived(_CALL):
            self._send(call[1], call[0], _PRESENT)

    def absent(self) -> list[int]:
        """Call the roll; the ranks that do not answer."""
        self._calls += 1
        for rank in self._others:
            self._send(self._calls, rank, _CALL)
        present: set[int] = set()
        least, most = _ROLL_SECONDS
        end = time.monotonic() + min(max(least, self.seconds), most)
        while len(present) < len(self._others) and time.monotonic() < end:
            self.answer()
            if found := self._arrived(_PRESENT):
                present |= {found[0]} if found[1] == self._calls else set()
            else:
                time.sleep(0.01)
        return sorted(set(self._others) - present)


class Wait:
    """One wait, which is looked at again and again."""

    def __init__(self, patience: Patience):
        self._patience = patience
        self._seen = time.monotonic()
        self._since = time.time()
        self._waited = self._looked = 0.0

    def look(self) -> bool:
        """True if the wait is long already, so that a nap costs nothing; NotAnswering if it is too long, and some ranks do not
        answer."""
        now = time.monotonic()
        self._waited += min(now - self._seen, _LONGEST_STEP)
        self._seen = now
        if self._waited - self._looked >= _LOOK_SECONDS:
            self._looked = self._waited
            self._patience.answer()
            if self._waited >= self._patience.seconds and (absent := self._patience.absent()):
                raise NotAnswering(_text(absent, self._since, self._waited))
        return self._looked > 0


def _text(ranks: list[int], since: float, waited: float) -> str:
    which = f"rank {ranks[0]} has" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))} have"
    long = f"{waited:.0f} s" if waited < 100 else f"{waited / 60:.0f} min"
    when = datetime.fromtimestamp(since).isoformat(" ", "seconds")
    return f"{which} not answered since {when}, for {long}; the last checkpoint is kept ([workers] patience says how long to wait)"
