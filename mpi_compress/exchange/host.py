"""A host's cores and memory: how a rank rests while it waits, and how the memory of messages is used again."""

import math
import os
import re
import resource
import signal
import sys
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from ctypes import CDLL
from functools import cache
from pathlib import Path

import numpy as np

from mpi_compress.core.errors import UserError
from mpi_compress.messages.kinds import Bytes

_SHARE, _SHORTEST_NAP, _LONGEST_NAP = 0.05, 2e-5, 2e-3  # a nap is this share of the time waited, within these seconds
_DEATH_OF_PARENT = 1  # Linux: the signal that a process gets then
_TIMER_SLACK = 29  # Linux: how much longer than asked for the system may sleep, 50 µs unless a thread says otherwise
_OF_MALLOC = {-1: 2**31 - 1, -3: 2**25}  # glibc: M_TRIM_THRESHOLD, and M_MMAP_THRESHOLD, which is 32 MiB at most
_OF_MPICH = 1_060_000  # bytes a rank: MPICH 5 takes 4096 and 1,057,344 a rank
_LARGE = 2**14  # bytes; smaller arrays come from memory that the process has


def _references(arrays: Iterable[Bytes]) -> list[int]:
    """How often each array is referred to, by views of it for example."""
    return [sys.getrefcount(array) for array in arrays]


_UNUSED = _references(deque([np.empty(0, np.uint8)]))[0]  # if it is only kept


class Buffers:
    """Memory for messages, at most so many arrays, that is used again once nobody has a view of it: the system gives new memory
    page by page, slowly."""

    def __init__(self, most: int):
        self._kept: deque[Bytes] = deque(maxlen=most)

    def take(self, size: int) -> Bytes:
        """An array (size,) whose content has no meaning."""
        if size >= _LARGE:
            for i, references in enumerate(_references(self._kept)):
                if references == _UNUSED and size <= self._kept[i].size <= 2 * size:
                    return self._kept[i][:size]
        new = np.empty(size, np.uint8)
        if size >= _LARGE:
            self._kept.append(new)
        return new[:]


def nap(waited: float) -> float:
    """For how long a rank leaves the core to others between two looks. The longer it has waited, the longer; all in seconds. A rank
    that wakes gets its core back at once; one that yields its turn would wait for the end of the other's."""
    return min(max(_SHARE * waited, _SHORTEST_NAP), _LONGEST_NAP)


def rest(waited: float) -> None:
    """Take a nap."""
    time.sleep(nap(waited))


@cache
def wake_on_time() -> None:
    """Let naps of this thread be as short as they are asked for, where the system can."""
    with suppress(OSError, AttributeError):
        CDLL(None).prctl(_TIMER_SLACK, 1000, 0, 0, 0)  # ns


@cache
def keep_freed_memory() -> None:
    """Let glibc keep up to 2 GB of freed memory for the next arrays: the system gives new memory page by page, slowly."""
    with suppress(OSError, AttributeError):  # another C library
        for parameter, value in _OF_MALLOC.items():
            CDLL(None).mallopt(parameter, value)


def end_with_the_launcher() -> None:
    """Let the system kill this rank once its parent, such as MPICH's proxy, has died: it would run on, and mpiexec wait."""
    with suppress(OSError, AttributeError):
        CDLL(None).prctl(_DEATH_OF_PARENT, signal.SIGKILL, 0, 0, 0)


def refuse_little_shared_memory() -> None:
    """UserError where /dev/shm has no room for the memory that MPICH's ranks of this host share: they would end by a bus error."""
    ranks = os.environ.get("MPI_LOCALNRANKS", "")  # set by its mpiexec
    if ranks.isdigit() and (shared := Path("/dev/shm")).is_dir():
        room, needed = os.statvfs(shared), int(ranks) * _OF_MPICH
        blocks = room.f_bavail if os.environ.get("MPI_LOCALRANKID") == "0" else room.f_blocks  # rank 0 takes it for all
        if room.f_blocks and blocks * room.f_frsize < needed:
            sizes = f"{blocks * room.f_frsize / 1e6:.3g} MB are free, and MPICH takes {needed / 1e6:.3g} MB there"
            raise UserError(f"{shared}: {sizes}; give it more (docker run --shm-size=1g), or start one process, without mpiexec")


def unlink_shared_memory() -> None:
    """Remove the name of the memory that MPICH's ranks of this host share, once all of them have it. MPICH removes it only where a
    run ends well. Without a name the system frees the memory with the last rank, however that ends."""
    with suppress(OSError):  # no Linux
        maps = Path("/proc/self/maps").read_text()
        for name in set(re.findall(r"/dev/shm/mpich_shm_\w+$", maps, re.MULTILINE)):
            os.unlink(name)


def own_cores() -> set[int]:
    """The numbers of the cores that this process may use."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def addressable() -> float:
    """Bytes of address space that `ulimit -v` leaves to this process; infinite where unknown."""
    with suppress(OSError, ValueError, IndexError):
        if (most := resource.getrlimit(resource.RLIMIT_AS)[0]) != resource.RLIM_INFINITY:
            return most - float(resource.getpagesize() * int(Path("/proc/self/statm").read_text().split()[0]))
    return math.inf


def available() -> float:
    """Bytes that this host, the groups of processes that this one is in, and `ulimit -v` can still give; infinite where unknown."""
    free = addressable()
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                free = min(free, 1024.0 * int(line.split()[1]))
        groups = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    except (OSError, ValueError, IndexError):
        return free
    for _, controllers, place in groups:
        if controllers == "":
            free = min(free, _left(Path("/sys/fs/cgroup"), place, "memory.max", "memory.current", ""))
        elif "memory" in controllers.split(","):
            root = Path("/sys/fs/cgroup/memory")
            free = min(free, _left(root, place, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"))
    return free


def _left(root: Path, place: str, limit: str, usage: str, prefix: str) -> float:
    """Bytes that the limits of a group, and of the groups above it, leave; files that the kernel caches can be given back."""
    free, folder, cache = math.inf, root / place.lstrip("/"), (f"{prefix}inactive_file", f"{prefix}active_file")
    while root in (folder, *folder.parents):
        try:
            most = (folder / limit).read_text().strip()
            if most.isdigit():
                kept = [int(x.split()[1]) for x in (folder / "memory.stat").read_text().splitlines() if x.split()[0] in cache]
                free = min(free, float(int(most) - int((folder / usage).read_text()) + sum(kept)))
        except (OSError, ValueError, IndexError):
            pass
        folder = folder.parent
    return free
