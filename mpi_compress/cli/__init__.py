"""The command line, one file a command: `add_arguments(parser)` and `act(options)`, which returns the exit status.

A command imports the rooms that it needs inside `act`, so that `--help`, `--version` and a wrong command wait for none.
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
