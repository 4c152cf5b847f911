"""Says that kernels are being compiled, which takes half a minute on a machine that runs a job for the first time."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mpi_compress.core import clock
from mpi_compress.core.progress import print_line, time_text
from mpi_compress.core.terminal import clear, has_bar, show
from mpi_compress.kernels import compilations

TEXT = "compiling kernels (once on this machine)"
_WORTH_SAYING = 1.0  # seconds of compiling
_SECONDS_BETWEEN_LINES = 60.0


class Compiling:
    """Counts the kernels that are compiled: in a bar that is there while they are, or one line, and then one a minute."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self.count, self.seconds, self._name = 0, 0.0, ""
        self._depth, self._begun, self._said = 0, 0.0, -_SECONDS_BETWEEN_LINES

    def begun(self, name: str) -> None:
        """A kernel is about to be compiled."""
        self._depth += 1
        if self._depth > 1:
            return
        self._name = name
        clock.stand_still()
        self._begun = time.monotonic()
        if self._quiet or self.seconds < _WORTH_SAYING:
            return
        if has_bar():
            show(TEXT, None, self._parts)
        elif self._begun - self._said >= _SECONDS_BETWEEN_LINES:
            self._said = self._begun
            print_line(f"{TEXT}: {'; '.join(self._parts)}")

    def ended(self) -> None:
        """It is compiled."""
        self._depth -= 1
        self.count += 1
        if self._depth == 0:
            self.seconds += time.monotonic() - self._begun
            clock.go_on()
            clear()

    def close(self) -> None:
        if self._depth:  # Ctrl-C in the middle of it
            clock.go_on()
            clear()

    @property
    def _parts(self) -> list[str]:
        return [f"{self.count} so far, in {time_text(self.seconds)}", f"now {self._name}"]


@contextmanager
def shown(quiet: bool) -> Iterator[None]:
    """Stop the algorithm's clock while something is compiled within this block, and report it; then where no bytecode is kept. It
    is not reported if `quiet`, or by MPI_COMPRESS_COMPILING=silent: where output is compared."""
    seen = Compiling(quiet or os.environ.get("MPI_COMPRESS_COMPILING") == "silent")
    try:
        with compilations(seen.begun, seen.ended):
            yield
    finally:
        seen.close()
    if not (quiet or sys.dont_write_bytecode or os.path.exists(str(__spec__.cached))):
        folder = Path(__file__).parents[2]
        print_line(f"no bytecode can be kept in {folder}, so each start compiles all modules: `python -m compileall -q {folder}`")
