"""Files that may be damaged are read by another process first: damage can crash HDF5."""

import json
import os
import select
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from mpi_compress.core import seals

_LONGEST = 600  # seconds for a file
_CRASHES = "is damaged: HDF5 fails to read it"
_PROGRAM = "from mpi_compress.results import trying; trying.answer()"


def is_doubtful(path: Path) -> bool:
    """True if a seal is broken, or an unfinished result has none: its process was killed."""
    try:
        holds = seals.holds(path)
    except OSError:  # which the reader says
        return False
    return not holds and (holds is False or path.suffix == ".part")


def crashes(path: Path) -> bool:
    """True if HDF5 ends the process that reads a doubtful file, or takes for ever."""
    return is_doubtful(path) and complaint_of(path).endswith(_CRASHES)


def complaint_of(path: Path) -> str:
    """Why a file cannot be read; "" if it can, damaged where it does not count or not at all."""
    with _lock:
        try:
            return _child.ask(path)
        except (OSError, ValueError):  # it has crashed, or does not answer
            _child.end()
            return f"{path}: {_CRASHES}"


class _Child:
    """A process that reads files one after another. It is begun when it is asked, again after a crash."""

    def __init__(self) -> None:
        self._process: Any = None
        self._parent = 0

    def ask(self, path: Path) -> str:
        """Its answer; OSError or ValueError if there is none."""
        if self._process is None or self._parent != os.getpid():
            line, pipe = [sys.executable, "-c", _PROGRAM], subprocess.PIPE
            self._process = subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
            self._parent = os.getpid()
        stdin, stdout = self._process.stdin, self._process.stdout
        place = str(path.absolute())  # the current folder may have changed since the process began
        print(json.dumps(place), file=stdin, flush=True)
        if not select.select([stdout], [], [], _LONGEST)[0]:
            raise TimeoutError
        return str(json.loads(stdout.readline())).replace(place, str(path))

    def end(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None


_child, _lock = _Child(), threading.Lock()
