"""How this process was started: alone, or as one of several ranks; and how all of them end when one fails.

Nothing here imports MPI unless a launcher started this process.
"""

import errno
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import tell
from mpi_compress.core.signals import EXIT_STOPPED, Interrupted, Stopped
from mpi_compress.exchange import Exchange, Local

T = TypeVar("T")

_RANK = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
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


class SharedUserError(UserError):
    """A user's error that every rank knows of: only rank 0 tells it, and all end by themselves."""


def team_of(comm: Any) -> Alone | Team:
    """The ranks of an mpi4py communicator, or this process alone."""
    return Alone() if comm is None or comm.size == 1 else Team(comm)


def launched() -> Alone | Team:
    """The team that a launcher started this process in.

    Raises:
        UserError: a launcher started several tasks, and MPI knows of one.
    """
    announced, by = _announced_size()
    if announced is None and not any(name in os.environ for name in _RANK[:3]):
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


def rank() -> int:
    """This process' number among those that a launcher started, as it says before MPI does."""
    return next((int(os.environ[n]) for n in _RANK if os.environ.get(n, "").isdigit()), 0)


_HEARD = 0.3  # seconds: a launcher that hears of an abort at once may pass on nothing of what was said before
_TURN = 2 * _HEARD  # between ranks that fail together


def run_to_the_end(main: Callable[[], int]) -> int:
    """Run `main`; whatever ends it is told once, on one line where it is the user's, and ends every rank.

    A rank that fails alone tells it and aborts the others. Ranks that fail together take turns: the first one's abort silences
    the rest.
    """
    try:
        status = main()
        sys.stdout.flush()  # here and not at Python's end, where nobody catches what goes wrong
        return status
    except SharedUserError as error:
        if rank() == 0:
            _tell(str(error))
        return 2
    except Stopped as stopped:
        if rank() == 0:
            _tell(str(stopped))
        return EXIT_STOPPED
    except UserError as error:
        status, text = 2, str(error)
    except Interrupted as interrupted:
        status, text = EXIT_STOPPED, f"stopped by {interrupted} before the first round; the same command begins again"
    except KeyboardInterrupt:
        status, text = 130, "interrupted"
    except BrokenPipeError:
        _print_no_more()
        return 0
    except SystemExit as error:  # in a part of the user's own: the other ranks would wait
        status, text = 3, f"something called sys.exit({error.code!r})"
    except MemoryError as error:
        status, text = 3, f"out of memory: {error}"
    except Exception as error:
        import traceback

        status, text = 3, traceback.format_exc()
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            text = f"cannot write: {error.strerror}"
            _print_no_more()
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized() or mpi.COMM_WORLD.size == 1:
        if mpi is None and status == 2 and rank() > 0:
            return status  # MPI was never reached: every task has the same to say
        if mpi is not None and mpi.Is_initialized() and rank() > 0:
            return status  # singletons started by mistake
        _tell(text)
        return status
    time.sleep(min(_TURN * mpi.COMM_WORLD.rank, 3.0))
    _tell(f"rank {mpi.COMM_WORLD.rank}: {text}" if status not in (2, EXIT_STOPPED) else text)
    time.sleep(_HEARD)
    mpi.COMM_WORLD.Abort(status)
    return status


def _print_no_more() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _tell(text: str) -> None:
    tell(f"mpi-compress: {text.rstrip()}")
