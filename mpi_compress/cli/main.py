"""The command line: `mpi-compress`, also `python -m mpi_compress`."""

import io
import os
import signal
import sys
from argparse import Action, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from functools import partial
from importlib import import_module
from typing import Any

import mpi_compress as mc
from mpi_compress.cli.parsing import Parser
from mpi_compress.core.ending import run_to_the_end
from mpi_compress.core.shipped import shipped

COMMANDS = {
    "new": "write a job, a compressor and a README to begin with",
    "run": "run a job, under mpiexec or in one process",
    "plan": "list the runs of a job; runs nothing",
    "submit": "SLURM: one array task a run, resumable",
    "plot": "draw a job's figure, or results",
    "table": "what each method needed to reach a target",
    "watch": "what is running, redrawn: rounds, losses, bits a second, and the figure",
    "check": "a job's claims against its results",
    "report": "every figure, claim and table in one self-contained page",
    "archive": "a job, its plugins and results as one zip, which `run` plays again and compares",
    "reproduce": "run many jobs, except what is done, and write their report",
    "show": "what is in a result, or how several differ",
    "results": "list, remove and move what lies in results",
    "calibrate": "under mpiexec: time messages on the real link, fit cost models to them",
    "data": "fetch, generate and describe data sets",
    "list": "what exists, its parameters, its paper",
}
"""A command's name, which is also that of its module, and its line in `--help`."""

_FIRST = f"""\
To begin:
  mpi-compress new first         then `cd first` and `mpi-compress run job.toml`
  mpi-compress list jobs         the papers' jobs, such as `mpi-compress run cat/fig1`
  mpi-compress COMMAND --help    what a command takes
Documentation: {shipped("docs") / "tutorial.md"}, and the pages beside it"""


def main(arguments: list[str] | None = None) -> int:
    """Entry point: the exit status."""
    if arguments is None and hasattr(signal, "SIGUSR1"):  # it warns a run before its time limit, and must not end other commands
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started this
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        if isinstance(stream := getattr(sys, name), io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # labels in letters that a terminal does not have
    parser = Parser(prog="mpi-compress", description=mc.__doc__, epilog=_FIRST, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--version", action=_Version, nargs=0, help="show program's version number and exit")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, text in COMMANDS.items():
        commands.add_parser(name, help=text, add_arguments=partial(_add_command, name))
    try:
        options = parser.parse_args(arguments)  # imports the command
    except KeyboardInterrupt:
        return run_to_the_end(_interrupted)
    return run_to_the_end(lambda: options.act(options))


def _interrupted() -> int:
    raise KeyboardInterrupt


def _add_command(name: str, parser: Parser) -> None:
    command = import_module(f"mpi_compress.cli.{name}")
    command.add_arguments(parser)
    parser.set_defaults(act=getattr(command, "act", None))  # each command of `data` has its own


class _Version(Action):
    """Prints the version, which is looked up only when asked for: that takes 40 ms."""

    def __call__(self, parser: ArgumentParser, namespace: Namespace, values: Any, option_string: str | None = None) -> None:
        print(f"mpi-compress {mc.__version__}")
        parser.exit()
