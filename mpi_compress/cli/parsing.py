"""What the commands' parsers share: one-line errors, a module that is imported when it is needed, arguments of several commands."""

import argparse
import sys
import tomllib
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from mpi_compress.core.ending import EXIT_USER_ERROR, rank
from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import print_line

if TYPE_CHECKING:
    from mpi_compress.job.loading import Job


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, from one rank.

    Args:
        module: of a command, with `add_arguments` and `act`; it is imported when the command is asked for.
    """

    def __init__(self, *args: Any, module: str = "", **settings: Any):
        super().__init__(*args, **settings)
        self._module = module

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._module:
            command = import_module(self._module)
            command.add_arguments(self)
            if hasattr(command, "act"):  # a command of commands has none of its own
                self.set_defaults(act=command.act)
        return super().parse_known_args(args, namespace)

    def add_commands(self, commands: Mapping[str, tuple[str, str]], metavar: str) -> None:
        """Add commands, name → (module, line in the help)."""
        added = self.add_subparsers(metavar=metavar, required=True)
        for name, (module, text) in commands.items():
            added.add_parser(name, help=text, module=module)

    def error(self, message: str) -> NoReturn:
        if rank() == 0:
            print_line(f"{self.prog}: {message}; `{self.prog} --help` tells more")
        sys.exit(EXIT_USER_ERROR)


def positive(text: str) -> int:
    """A whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} was given; it should be a whole number from 1 on")
    return int(text)


def add_job(parser: argparse.ArgumentParser) -> None:
    """A job, which of its runs, and what is set in them: for `load`."""
    parser.add_argument("job", metavar="JOB", help="a job file")
    parser.add_argument("--only", metavar="LABEL", help="the runs of this label")
    parser.add_argument("--index", type=int, metavar="I", help="the run of this number in `plan`")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="such as stop.rounds=100")
    parser.add_argument("--out", default="results", metavar="FOLDER", help="where results go (default: results)")
    add_full(parser)


def add_page(parser: argparse.ArgumentParser) -> None:
    """The jobs of a report, and what is written."""
    parser.add_argument("jobs", nargs="*", metavar="JOB|FOLDER", help="job files, or folders of such (default: ./jobs)")
    parser.add_argument("-o", dest="page", default="report.html", metavar="PAGE.html", help="the page (default: report.html)")
    parser.add_argument("--out", default="results", metavar="FOLDER", help="where the jobs' results are (default: results)")
    parser.add_argument("--table", metavar="FILE.md", help="also a table of figures, data and status, as Markdown")
    parser.add_argument("--gallery", metavar="FILE.md", help="also all figures as pictures, in a page of Markdown")
    parser.add_argument("--full", action="store_true", help="at full size, where a job has a table [full]")


def add_results_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", default="results", metavar="FOLDER", help="where the job's results are (default: results)")


def add_full(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--full", action="store_true", help="at full size, as the job's table [full] says")


def load(options: argparse.Namespace) -> "Job":
    """The job that the arguments of `add_job` name."""
    from mpi_compress.job.loading import load_job

    overrides = key_values(options.set, "--set ", "stop.rounds=100")
    return load_job(options.job, overrides, options.only, options.index, options.full)


def key_values(pairs: list[str], option: str = "", example: str = "samples=1000") -> dict[str, Any]:
    """KEY=VALUE … with TOML values; what is no TOML is text. `option` and `example` are for the error.

    Raises:
        UserError: one without "=".
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise UserError(f"{option}{pair}: KEY=VALUE is wanted, such as {example}")
        try:
            found[key] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            found[key] = text
    return found
