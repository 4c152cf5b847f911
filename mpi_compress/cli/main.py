"""The command line: `mpi-compress`, also `python -m mpi_compress`."""

import gc
import io
import os
import re
import signal
import sys
import textwrap
from argparse import Action, ArgumentParser, HelpFormatter, Namespace
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import mpi_compress as mc
from mpi_compress.cli.arguments import COMMANDS, GROUPS, Command
from mpi_compress.core.ending import EXIT_USER_ERROR, rank, run_to_the_end
from mpi_compress.core.errors import nearest
from mpi_compress.core.progress import print_line
from mpi_compress.core.removed import REMOVED
from mpi_compress.core.shipped import shipped
from mpi_compress.core.terminal import BOLD, RED, coloured, room, say, wrapped

_FIRST = Path(__file__).with_name("begin.txt").read_text("utf-8").replace("DOCS", str(shipped("docs"))).splitlines()


def main(arguments: list[str] | None = None) -> int:
    """Entry point: the exit status."""
    if arguments is None and hasattr(signal, "SIGUSR1"):  # it warns a run before its time limit, and must not end other commands
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started this
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        if isinstance(stream := getattr(sys, name), io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # labels in letters that a terminal does not have
    os.environ["MPLBACKEND"] = "agg"  # figures go into files
    parser = _Overview(prog="mpi-compress")
    parser.add_argument("--version", action=_Version, nargs=0, help="show program's version number and exit")
    _add_commands(parser, COMMANDS)
    if not (sys.argv[1:] if arguments is None else arguments):
        say(str(mc.__doc__), *_FIRST[:-1], "  mpi-compress --help           all commands", _FIRST[-1], fits=True)
        return 0
    options = parser.parse_args(arguments)
    command = f"mpi_compress.cli.{options.module.replace('-', '_')}"  # which takes a while to import
    status = run_to_the_end(lambda: getattr(import_module(command), options.function)(options))
    if arguments is None:
        gc.freeze()  # Python's end would look for cycles among all that was imported, for a third of a second
    return status


def _add_commands(parser: ArgumentParser, commands: Mapping[str, Command], module: str | None = None) -> None:
    """Add commands, or the commands of a command: its module has a function for each of them."""
    parsers = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    for name, command in commands.items():
        own = parsers.add_parser(name, help=command.help, description=command.help, formatter_class=_Help)
        own.set_defaults(module=module or name, function=f"act_{name}" if module else "act")
        for names, settings in command.arguments:
            own.add_argument(*names, **settings)
        if command.commands:
            _add_commands(own, command.commands, name)


class _Help(HelpFormatter):
    """Help whose lines do not end within a command such as mpi-compress."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(text, width, break_on_hyphens=False)


class _Parser(ArgumentParser):
    """A parser whose errors are one line, from one rank; of a wrong choice it also says what was probably meant."""

    def error(self, message: str) -> NoReturn:
        given = re.search(r"(?:invalid choice: '|unrecognized arguments: )([\w-]+)", message)
        if given and given[1] in REMOVED:
            message = f"{given[1]}: was removed; {REMOVED[given[1]]}"
        elif wrong := re.fullmatch(r"argument (.*): invalid choice: '(.*)' \(choose from (.*)\)", message):
            message = f"{wrong[1]}: {nearest(wrong[2], wrong[3].replace(chr(39), '').split(', '), 'choice')}"
        if rank() == 0:
            print_line(f"{self.prog}: {message}; `{self.prog} --help` explains", RED)
        sys.exit(EXIT_USER_ERROR)


class _Overview(_Parser):
    """The parser of all commands, whose help has them in groups."""

    def format_help(self) -> str:
        lines = [f"usage: {self.prog} [-h] [--version] COMMAND …", "", str(mc.__doc__)]
        for group, names in GROUPS.items():
            lines += ["", coloured(group, BOLD, sys.stdout), *(f"  {name:12s}{COMMANDS[name].help}" for name in names)]
        return wrapped("\n".join([*lines, *_FIRST]), room(sys.stdout)) + "\n"


class _Version(Action):
    """Prints the version, which is looked up only when asked for: that takes 40 ms."""

    def __call__(self, parser: ArgumentParser, namespace: Namespace, values: Any, option_string: str | None = None) -> None:
        print(f"mpi-compress {mc.__version__}")
        parser.exit()
