"""The processes that a launcher started together (ranks), or one process, and the operations that they do together.

MPI is imported only if a launcher started this process.
"""

import os
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from mpi_compress.core.ending import RANK_VARIABLES, SharedUserError
from mpi_compress.core.errors import UserError
from mpi_compress.exchange.base import Exchange
from mpi_compress.exchange.host import end_with_the_launcher, refuse_little_shared_memory
from mpi_compress.kernels import NotCompiled, without_compiling
from mpi_compress.messages.batch import batch_of

T = TypeVar("T")
_SIZE = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")  # mpiexec's before SLURM's
_TIMES = 200  # that a message is sent to itself


class Ranks:
    """The processes that run a job together; all of them make the same calls in the same order. This is one process alone, which
    hosts the master and all workers."""

    rank = 0  # the number of this process
    size = 1  # number of ranks
    is_root = True  # on rank 0
    library = "none"  # the MPI library and its version
    crowded = False  # True if ranks of this host share cores
    ranks_here: Sequence[int] = (0,)  # the ranks on this host

    def on_root(self, work: Callable[[], T]) -> T:
        """Do `work` on rank 0 and return its result on every rank. A UserError there is raised on all ranks."""
        return work()

    def each(self, work: Callable[[], T]) -> T:
        """Do `work` on every rank, and return its result there. If it raises UserErrors, the first such rank's is raised on all
        ranks."""
        return work()

    def compiling_once(self, work: Callable[[], None]) -> None:
        """Do `work` on every rank, perhaps twice. What has to be compiled for it, one rank of each host compiles, and the others
        wait for that."""
        work()

    def that_see(self, file: Path) -> Sequence[int]:
        """The ranks that find rank 0's file (or folder): those of its host, and all if the file system is shared."""
        return (0,)

    def pair(self) -> "Ranks | None":
        """Ranks 0 and 1 by themselves; None on the other ranks."""
        return self

    def exchange(self, n: int, kind: str, master: str, patience: float = 0.0) -> Exchange:
        """The exchange of a `kind` for n workers; `master` says whether rank 0 hosts workers too. Ranks that wait for longer
        than `patience` seconds for one that does not answer raise NotAnswering; 0: they wait for ever."""
        return Exchange(n, counts_down=kind != "allgather")

    def seconds_a_message(self) -> float:
        """The time of this process that sending and receiving a small message takes, apart from the link's."""
        return 0.0

    def close(self) -> None:
        """Free the MPI objects that this holds."""


class MPIRanks(Ranks):
    """The ranks of an mpi4py communicator."""

    def __init__(self, comm: Any):
        from mpi4py import MPI

        from mpi_compress.exchange.channel import Channel
        from mpi_compress.exchange.host import unlink_shared_memory

        self._comm = comm
        self._channel = Channel(comm)
        host = comm.Split_type(MPI.COMM_TYPE_SHARED)
        self._host = Channel(host)
        host.Free()
        if self._host.rank == 0:
            unlink_shared_memory()
        self.rank, self.size = comm.rank, comm.size
        self.crowded = self._channel.crowded
        self.is_root = self.rank == 0
        everyone, here = comm.Get_group(), self._host.comm.Get_group()
        self.ranks_here = MPI.Group.Translate_ranks(here, list(range(here.size)), everyone)
        self.library = MPI.Get_library_version().split("\n")[0].strip().rstrip("\x00")

    def on_root(self, work: Callable[[], T]) -> T:
        result: Any = None
        if self.is_root:
            try:
                result = work()
            except UserError as error:
                result = error
        return self._shared(result)

    def each(self, work: Callable[[], T]) -> T:
        result: Any = None
        error: UserError | None = None
        try:
            result = work()
        except UserError as raised:
            error = raised
        self._shared(next(filter(None, self._channel.to_root(error)), None))
        return result

    def _shared(self, result: Any) -> Any:
        """Rank 0's result, on every rank; a UserError is raised there."""
        result = self._channel.share(result)
        if isinstance(result, UserError):
            raise SharedUserError(*result.args)
        return result

    def compiling_once(self, work: Callable[[], None]) -> None:
        if self._host.rank > 0:
            with suppress(NotCompiled), without_compiling():  # what is compiled already is loaded meanwhile
                work()
            self._host.barrier()
        work()
        if self._host.rank == 0:
            self._host.barrier()

    def that_see(self, file: Path) -> Sequence[int]:
        def identity() -> tuple[int, int] | None:
            return (file.stat().st_ino, file.stat().st_mtime_ns) if file.exists() else None

        right = self.on_root(identity)
        seen = self._channel.to_root(identity() == right)
        return self._channel.share([rank for rank, sees in enumerate(seen) if sees])

    def pair(self) -> "MPIRanks | None":
        from mpi4py import MPI

        if self.size <= 2:
            return self
        two = self._comm.Split(0 if self.rank < 2 else MPI.UNDEFINED, self.rank)
        return MPIRanks(two) if two != MPI.COMM_NULL else None

    def exchange(self, n: int, kind: str, master: str, patience: float = 0.0) -> Exchange:
        from mpi_compress.exchange.mpi import AllGather, PointToPoint

        if kind == "allgather":
            return AllGather(self._comm, n, patience, self._channel.futexes)
        return PointToPoint(self._comm, n, master == "worker", patience, self._channel.futexes)

    def seconds_a_message(self) -> float:
        from mpi4py import MPI

        from mpi_compress.exchange.channel import Messages

        channel, took = Messages(MPI.COMM_SELF, None, 0), []
        message = batch_of(np.zeros(100, np.uint8))
        for _ in range(_TIMES):
            start = time.perf_counter()
            requests = channel.begin_to_send(message, [0], 0)  # they complete where they are received
            channel.receive_messages({0: 1}, 0)
            channel.wait(*requests)
            took.append(time.perf_counter() - start)
        channel.free()
        return float(np.median(took))

    def close(self) -> None:
        self._channel.free()
        self._host.free()


def at_root(ranks: Ranks, work: Callable[[], T]) -> T | None:
    """Do `work` on rank 0 and return its result there, None elsewhere. A UserError there is raised on all ranks."""
    kept: list[T] = []
    ranks.on_root(lambda: kept.append(work()))
    return kept[0] if kept else None


def ranks_of(comm: Any) -> Ranks:
    """The ranks of an mpi4py communicator; this process alone for None or a communicator of one."""
    return Ranks() if comm is None or comm.size == 1 else MPIRanks(comm)


def launched() -> Ranks:
    """The ranks that a launcher started, this process among them; UserError if it started several tasks, and MPI knows of one."""
    announced, by = next(((int(os.environ[name]), name) for name in _SIZE if os.environ.get(name, "").isdigit()), (None, ""))
    if announced is None and not any(name in os.environ for name in RANK_VARIABLES[:3]):
        return Ranks()
    end_with_the_launcher()
    refuse_little_shared_memory()
    os.environ.setdefault("MPIR_CVAR_SUPPRESS_ABORT_MESSAGE", "1")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "suspicious MPI execution environment")  # reported below, in one line
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
    return ranks_of(MPI.COMM_WORLD)
