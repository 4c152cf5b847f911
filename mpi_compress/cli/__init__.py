"""The command line: `arguments` says what each command takes, and a file for each has `act(options)`, which gives the exit status.

A command's file is imported once its arguments are read, so that `--help`, `--version` and a wrong command wait for nothing else.
"""

import sys
from types import TracebackType

_report = sys.excepthook


def _report_in_a_line(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """Ctrl-C while a command is still imported, or as it ends, is one line, of one rank."""
    from mpi_compress.core.ending import INTERRUPTED, rank
    from mpi_compress.core.progress import print_line

    if not issubclass(kind, KeyboardInterrupt):
        _report(kind, error, traceback)
    elif rank() == 0:
        print_line(f"mpi-compress: {INTERRUPTED}")


sys.excepthook = _report_in_a_line
