"""How this process was started: alone, or as one of several ranks.

Nothing here imports MPI unless a launcher started this process.
"""

import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from mpi_compress.core.ending import RANK_VARIABLES, SharedUserError
from mpi_compress.core.errors import UserError
from mpi_compress.exchange import Exchange, Local

T = TypeVar("T")

_SIZE = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")
_SLURM_SIZE = ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")


class Alone:
    """One process hosts the master and all workers."""

    rank, size = 0, 1
    is_root = True
    library = "none"
    crowded = False  # whether ranks of this host share cores
    ranks_here: Sequence[int] = (0,)  # those of this host

    def on_root(self, work: Callable[[], T]) -> T:
        """What `work` gives at rank 0, on every rank; a UserError it raises there is raised on all."""
        return work()

    def each(self, work: Callable[[], object]) -> None:
        """Every rank does `work`; a UserError on any of them is raised on all, that of the first such rank."""
        work()

    def first_on_each_host(self, work: Callable[[], None]) -> None:
        """Every rank does `work`, after one rank of its host has done it alone."""
        work()

    def that_see(self, file: Path) -> Sequence[int]:
        """The ranks that find rank 0's file (or folder) where it is: those of its host, and all where the file system is shared."""
        return (0,)

    def pair(self) -> "Alone | Team | None":
        """Ranks 0 and 1 by themselves, where there are more; None on the others."""
        return self

    def exchange(self, n: int, kind: str, master: str) -> Exchange:
        return Local(n, counts_down=kind != "allgather")

    def close(self) -> None:
        """Give back what it holds of MPI."""


class Team:
    """The ranks of a communicator."""

    def __init__(self, comm: Any):
        from mpi4py import MPI

        from mpi_compress.exchange.mpi import Channel

        self._comm = comm
        self._channel = Channel(comm)
        host = comm.Split_type(MPI.COMM_TYPE_SHARED)
        self._host = Channel(host, self._channel.crowded)
        host.Free()
        self.rank, self.size = comm.rank, comm.size
        self.crowded = self._channel.crowded
        self.is_root = self.rank == 0
        everyone, here = comm.Get_group(), self._host.comm.Get_group()
        self.ranks_here: Sequence[int] = MPI.Group.Translate_ranks(here, list(range(here.size)), everyone)
        self.library = MPI.Get_library_version().split("\n")[0].strip().rstrip("\x00")

    def on_root(self, work: Callable[[], T]) -> T:
        result: Any = None
        if self.is_root:
            try:
                result = work()
            except UserError as error:
                result = error
        result = self._channel.share(result)
        if isinstance(result, UserError):
            raise SharedUserError(*result.args)
        return result

    def each(self, work: Callable[[], object]) -> None:
        error: UserError | None = None
        try:
            work()
        except UserError as raised:
            error = raised
        found = [e for e in self._channel.to_root(error) if e is not None]

        def tell() -> None:
            if found:
                raise found[0]

        self.on_root(tell)

    def first_on_each_host(self, work: Callable[[], None]) -> None:
        if self._host.rank == 0:
            work()
        self._host.barrier()
        if self._host.rank != 0:
            work()

    def that_see(self, file: Path) -> Sequence[int]:
        def identity() -> tuple[int, int] | None:
            return (file.stat().st_ino, file.stat().st_mtime_ns) if file.exists() else None

        right = self.on_root(identity)
        seen = self._channel.to_root(identity() == right)
        return self._channel.share([rank for rank, sees in enumerate(seen) if sees])

    def pair(self) -> "Team | None":
        from mpi4py import MPI

        if self.size <= 2:
            return self
        two = self._comm.Split(0 if self.rank < 2 else MPI.UNDEFINED, self.rank)
        return Team(two) if two != MPI.COMM_NULL else None

    def exchange(self, n: int, kind: str, master: str) -> Exchange:
        from mpi_compress.exchange.mpi import AllGather, PointToPoint

        return AllGather(self._comm, n) if kind == "allgather" else PointToPoint(self._comm, n, master == "worker")

    def close(self) -> None:
        self._channel.free()
        self._host.free()


def at_root(team: Alone | Team, work: Callable[[], T]) -> T | None:
    """What `work` gives at rank 0, which stays there; a UserError it raises is raised on all ranks."""
    kept: list[T] = []
    team.on_root(lambda: kept.append(work()))
    return kept[0] if kept else None


def team_of(comm: Any) -> Alone | Team:
    """The ranks of an mpi4py communicator, or this process alone."""
    return Alone() if comm is None or comm.size == 1 else Team(comm)


def launched() -> Alone | Team:
    """The team that a launcher started this process in.

    Raises:
        UserError: a launcher started several tasks, and MPI knows of one.
    """
    announced, by = _announced_size()
    if announced is None and not any(name in os.environ for name in RANK_VARIABLES[:3]):
        return Alone()
    os.environ.setdefault("MPIR_CVAR_SUPPRESS_ABORT_MESSAGE", "1")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "suspicious MPI execution environment")  # told below, in one line
            from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise UserError(
            f"{by or 'a launcher'} started this, but MPI cannot be loaded ({str(error).splitlines()[0]}): "
            "pip install 'mpi-compress[mpich]' brings one, or load the site's MPI module"
        ) from None
    size = MPI.COMM_WORLD.size
    if announced and announced > 1 and size == 1:
        raise UserError(
            f"{by} says there are {announced} tasks, but MPI says this is the only rank, so each would run the whole job: "
            f"start it by the mpiexec that belongs to {MPI.get_vendor()[0]} (for mpich from PyPI: mpiexec beside this Python), "
            "or srun --mpi=pmi2; for one process on purpose add --one-process"
        )
    return team_of(MPI.COMM_WORLD)


def _announced_size() -> tuple[int | None, str]:
    """How many tasks the launcher says there are: mpiexec's word before SLURM's."""
    for name in (*_SIZE, *_SLURM_SIZE):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name]), name
    return None, ""
