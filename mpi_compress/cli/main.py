"""The command line: `mpi-compress`, also `python -m mpi_compress`."""

import io
import os
import signal
import sys
from argparse import Action, ArgumentParser, Namespace
from typing import Any

import mpi_compress as mc
from mpi_compress.cli.parsing import Parser
from mpi_compress.core.ending import run_to_the_end

COMMANDS = {
    "run": ("mpi_compress.cli.run", "run a job, under mpiexec or in one process"),
    "plan": ("mpi_compress.cli.plan", "list the runs of a job; runs nothing"),
    "submit": ("mpi_compress.cli.submit", "SLURM: one array task a run, resumable"),
    "plot": ("mpi_compress.cli.plot", "draw a job's figure, or results"),
    "check": ("mpi_compress.cli.check", "a job's claims against its results"),
    "report": ("mpi_compress.cli.report", "every figure, claim and table in one self-contained page"),
    "reproduce": ("mpi_compress.cli.reproduce", "run many jobs, what is done left out, and write their report"),
    "show": ("mpi_compress.cli.show", "what is in a result; of two, where they part"),
    "calibrate": ("mpi_compress.cli.calibrate", "under mpiexec: time messages on the real link, fit cost models to them"),
    "data": ("mpi_compress.cli.data", "fetch, generate and describe data sets"),
    "list": ("mpi_compress.cli.list", "what exists, its parameters, its paper"),
}
"""A command's name → its module, and its line in `--help`."""


def main(arguments: list[str] | None = None) -> int:
    """Entry point: the exit status."""
    if arguments is None and hasattr(signal, "SIGUSR1"):  # a warning for runs: it ends nothing that has none, or is done
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started this
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        if isinstance(stream := getattr(sys, name), io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # labels in letters that a terminal does not have
    parser = Parser(prog="mpi-compress", description=mc.__doc__)
    parser.add_argument("--version", action=_Version, nargs=0, help="show program's version number and exit")
    parser.add_commands(COMMANDS, "COMMAND")
    options = parser.parse_args(arguments)
    return run_to_the_end(lambda: options.act(options))


class _Version(Action):
    """Prints the version, which is looked up only when asked for: that takes 40 ms."""

    def __call__(self, parser: ArgumentParser, namespace: Namespace, values: Any, option_string: str | None = None) -> None:
        print(f"mpi-compress {mc.__version__}")
        parser.exit()
