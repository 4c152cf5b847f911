"""Whether somebody watches what this process writes to standard error: on a terminal, in a notebook, or behind mpiexec."""

import os
import stat
import sys
from functools import cache
from pathlib import Path
from typing import Any

_LAUNCHERS = ("mpiexec", "mpirun", "prterun", "prted", "orted", "hydra_pmi_proxy")  # with their helpers, by their first letters
_PROCESSES = Path("/proc")
_USUAL = os.terminal_size((80, 24))


def has_bar() -> bool:
    """True if progress is a bar rather than lines."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules or launchers_terminal() is not None


def bar(**settings: Any) -> Any:
    """A bar of tqdm that is gone when it is closed, as wide as the terminal."""
    from tqdm import tqdm  # takes 0.05 s to import

    columns, lines = _size()
    return tqdm(leave=False, ncols=columns, nrows=lines, **settings)


@cache
def launchers_terminal() -> Path | None:
    """The terminal of the mpiexec that started this process, if mpiexec passes standard error on to it.

    It is found on Linux alone, and on mpiexec's own host.
    """
    try:
        if not stat.S_ISFIFO(os.fstat(sys.stderr.fileno()).st_mode):
            return None
        launcher, parent = 0, os.getppid()
        while (_PROCESSES / str(parent) / "comm").read_text().startswith(_LAUNCHERS):
            launcher, parent = parent, _parent_of(parent)
        shown_on = Path(os.readlink(_PROCESSES / str(launcher) / "fd" / "2")) if launcher else None
    except (OSError, ValueError):
        return None
    return shown_on if shown_on is not None and shown_on.as_posix().startswith(("/dev/pts/", "/dev/tty")) else None


def _parent_of(process: int) -> int:
    """Its number: the second field after its name, which is in parentheses."""
    return int((_PROCESSES / str(process) / "stat").read_text().rpartition(")")[2].split()[1])


def _size() -> tuple[int, int]:
    """Columns and lines of the terminal; usual ones where it does not say."""
    terminal = None if sys.stderr.isatty() else launchers_terminal()
    try:
        opened = sys.stderr.fileno() if terminal is None else os.open(terminal, os.O_RDONLY | os.O_NOCTTY)
        try:
            found = os.get_terminal_size(opened)
            return found.columns or _USUAL.columns, found.lines or _USUAL.lines
        finally:
            if terminal is not None:
                os.close(opened)
    except (OSError, ValueError):
        return _USUAL
