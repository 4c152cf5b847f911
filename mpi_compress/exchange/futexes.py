"""How ranks of a host that share cores wait for each other.

Waiting in MPI keeps a core busy. So they sleep, each on a futex, a word of shared memory, until another rank of the host wakes
them. A rank that sends wakes its receiver, and one that has received wakes its sender, which a long message waits for. Whoever
sleeps looks again by itself after a while: what comes from another host, or from within MPI, wakes nobody. Where the system has no
futex, ranks nap; by other MPIs than MPICH, too: rounds of 5 ranks on 2 cores took longer by Open MPI.
"""

import ctypes
import mmap
import os
import platform
import sys
import tempfile
import time
from contextlib import suppress

from mpi4py import MPI

from mpi_compress.exchange.host import own_cores

_FUTEX = {"x86_64": 202, "aarch64": 98}.get(platform.machine(), 0) if sys.platform == "linux" else 0  # the system call's number
_WAIT, _WAKE = 0, 1
_LINE = 64  # bytes between two words, which processors share as a whole


class _Time(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class Futexes:
    """The futexes of the ranks of a communicator that are on this host, all of which make them together. `crowded` is True if they
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
        """True if that rank wakes this one as it sends."""
        return rank in self._words

    def wake(self, rank: int) -> None:
        """Wake a rank, if it sleeps on this host."""
        if (word := self._words.get(rank)) is not None:
            word.value += 1  # who does so at the same moment may write the same number, and wakes, too
            self._call(_FUTEX, ctypes.byref(word), _WAKE, 1, None, None, 0)

    def value(self) -> int:
        """The number to give to `wait`; it is taken before looking at what is waited for."""
        return self._own.value if self._words else 0

    def wait(self, value: int, seconds: float) -> None:
        """Leave the core to others until somebody wakes this rank, or did so since `value` was taken, or for so long."""
        if not self._words:
            time.sleep(seconds)
            return
        limit = _Time(int(seconds), int(1e9 * (seconds % 1.0)))
        self._call(_FUTEX, ctypes.byref(self._own), _WAIT, value, ctypes.byref(limit), None, 0)


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
