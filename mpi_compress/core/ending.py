"""How a process ends: with one line on stderr and an exit status, and with all other ranks when one of them fails.

Nothing here imports MPI: ranks are known from what the launcher put into the environment.
"""

import errno
import os
import socket
import sys
import time
from collections.abc import Callable

from mpi_compress.core.blame import text_of
from mpi_compress.core.errors import NotAnswering, NotAsAnnounced, UserError
from mpi_compress.core.progress import print_line
from mpi_compress.core.signals import EXIT_STOPPED, Interrupted, Stopped
from mpi_compress.core.terminal import RED, printable

RANK_VARIABLES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
EXIT_USER_ERROR, EXIT_FAILED, EXIT_KEYBOARD = 2, 3, 130
INTERRUPTED = "interrupted"
_HEARD = 0.3  # seconds: a launcher that sees an abort at once may drop the text printed before it
_TURN = 2 * _HEARD  # between ranks that fail together
_PATIENT = 3.0  # seconds in which rank 0, unless it is busy, reports a signal that has reached all ranks, and aborts them
_names: list[socket.socket] = []  # that this process has taken


class SharedUserError(UserError):
    """A user's error that every rank raises: only rank 0 reports it, and all end by themselves."""


def rank() -> int:
    """The number of this process among those that a launcher started, from the environment."""
    return next((int(os.environ[n]) for n in RANK_VARIABLES if os.environ.get(n, "").isdigit()), 0)


def run_to_the_end(main: Callable[[], int]) -> int:
    """Run `main` and return the exit status; an error that ends it is reported once, a user's error in one line. A rank that fails
    alone reports it and aborts the others. Ranks that fail together take turns: the first one's abort silences the rest. On a slow
    host that takes longer than a turn, so that on Linux the rest also see that one has reported."""
    try:
        status = main()
        sys.stdout.flush()  # here and not at Python's exit, where no error is caught
        return status
    except (SharedUserError, Stopped) as error:  # known to all ranks
        if rank() == 0:
            _report(printable(str(error)))
        return EXIT_STOPPED if isinstance(error, Stopped) else EXIT_USER_ERROR
    except BrokenPipeError:
        _print_no_more()
        return 0
    except BaseException as error:
        return end_all_ranks(*_status_and_text(error))


def _status_and_text(error: BaseException) -> tuple[int, str]:
    if isinstance(error.__cause__, Interrupted | KeyboardInterrupt):  # Python wraps one that comes while a class is made
        error = error.__cause__
    match error:
        case UserError():
            return EXIT_USER_ERROR, printable(str(error))
        case Interrupted():
            return EXIT_STOPPED, f"stopped by {error} {error.when}; run the same command again to go on"
        case KeyboardInterrupt():
            return EXIT_KEYBOARD, INTERRUPTED
        case SystemExit():  # in a user's part: the other ranks would wait
            return EXIT_FAILED, f"something called sys.exit({error.code!r})"
        case MemoryError():
            return EXIT_FAILED, f"out of memory: {error}"
        case OSError(errno=errno.ENOSPC):
            _print_no_more()
            return EXIT_FAILED, f"cannot write: {error.strerror}"
        case PermissionError():
            return EXIT_USER_ERROR, f"{error.filename}: {error.strerror}; it may belong to another account"
        case NotAnswering() | NotAsAnnounced():
            return EXIT_FAILED, str(error)
        case UnicodeEncodeError() if error.encoding != "utf-8":
            what = f"{error.object[error.start : error.end]!a} is not in the system's encoding, {error.encoding}"
            return EXIT_USER_ERROR, f"{what}; LC_ALL=C.UTF-8 has all letters"
        case Exception():
            return EXIT_FAILED, text_of(error)
    raise error


def end_all_ranks(status: int, text: str) -> int:
    """Report, and abort the other ranks where MPI runs."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized() or mpi.COMM_WORLD.size == 1:
        is_shared = status in (EXIT_USER_ERROR, EXIT_STOPPED, EXIT_KEYBOARD) if mpi is None else mpi.Is_initialized()
        if rank() == 0 or not is_shared:  # MPI was not reached, or these are singletons started by mistake
            _report(text)
        return status
    signalled = status in (EXIT_STOPPED, EXIT_KEYBOARD)  # mostly all ranks get the signal, and rank 0 reports it
    time.sleep(min(_TURN * mpi.COMM_WORLD.rank, 3.0) + (_PATIENT if signalled and mpi.COMM_WORLD.rank else 0.0))
    if _is_first():
        _report(text if status in (EXIT_USER_ERROR, EXIT_STOPPED) else f"rank {mpi.COMM_WORLD.rank}: {text}")
    time.sleep(_HEARD)
    mpi.COMM_WORLD.Abort(status)
    return status


def _is_first() -> bool:
    """True if no rank that this host's launcher has started has asked before, as far as the system can tell. The first one takes a
    name that goes when its process ends."""
    if sys.platform != "linux":
        return True
    _names.append(socket.socket(socket.AF_UNIX))
    try:
        _names[-1].bind(f"\0mpi-compress ends {os.getuid()} {os.getppid()}")
    except OSError as error:
        return error.errno != errno.EADDRINUSE
    return True


def _print_no_more() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report(text: str) -> None:
    print_line(f"mpi-compress: {text.rstrip()}", RED)
