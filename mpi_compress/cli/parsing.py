"""What the commands' parsers share: errors of one line, and the arguments of several commands."""

import argparse
import re
import sys
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from mpi_compress.core.ending import EXIT_USER_ERROR, rank
from mpi_compress.core.errors import UserError, nearest
from mpi_compress.core.progress import print_line
from mpi_compress.core.shipped import named

if TYPE_CHECKING:
    from mpi_compress.job.loading import Job

A_JOB = "a job file, or one of the package's by its name (`mpi-compress list jobs`)"


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, from one rank.

    Args:
        add_arguments: adds the arguments of a command, once the command is asked for.
    """

    def __init__(self, *args: Any, add_arguments: Callable[["Parser"], None] | None = None, **settings: Any):
        super().__init__(*args, **settings)
        self._add_arguments = add_arguments

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._add_arguments is not None:
            self._add_arguments(self)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        if rank() == 0:
            print_line(f"{self.prog}: {_with_nearest(message)}; `{self.prog} --help` explains")
        sys.exit(EXIT_USER_ERROR)


def _with_nearest(message: str) -> str:
    """A message of argparse; of a wrong choice, one that also says what was probably meant."""
    wrong = re.fullmatch(r"argument (.*): invalid choice: '(.*)' \(choose from (.*)\)", message)
    if wrong is None:
        return message
    return f"{wrong[1]}: {nearest(wrong[2], wrong[3].replace(chr(39), '').split(', '), 'choice')}"


def add_job(parser: argparse.ArgumentParser) -> None:
    """A job, which of its runs, and what is set in them: for `load`."""
    parser.add_argument("job", type=named, metavar="JOB", help=A_JOB)
    _add_runs(parser)


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """Jobs, which of their runs, and what is set in them: for `load_one`."""
    parser.add_argument("jobs", type=named, nargs="+", metavar="JOB", help=A_JOB)
    _add_runs(parser)


def _add_runs(parser: argparse.ArgumentParser) -> None:
    add_choice(parser)
    parser.add_argument("--index", type=int, metavar="I", help="the run of this number in `plan`")
    add_results(parser, "where results go")


def add_choice(parser: argparse.ArgumentParser) -> None:
    """Which runs of a job, and what is set in them."""
    parser.add_argument("--only", action="append", metavar="LABEL", help="the runs of this label, such as 'top-*'; again for more")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="such as stop.rounds=100")


def add_results(parser: argparse.ArgumentParser, where: str = "where the job's results are") -> None:
    """The folder of results, and the option to take a job at full size."""
    parser.add_argument("--out", default="results", metavar="FOLDER", help=f"{where} (default: results)")
    parser.add_argument("--full", action="store_true", help="at full size, as the job's table [full] says")


def load(options: argparse.Namespace, frozen: Path | None = None) -> "Job":
    """The job that the arguments of `add_job` name, or as it is frozen in a folder."""
    return load_one(options.job, options, options.index, frozen)


def load_one(file: str | Path, options: argparse.Namespace, index: int | None = None, frozen: Path | None = None) -> "Job":
    """One of the jobs that a command is given, with the arguments of `add_choice` and `add_results`."""
    from mpi_compress.job.loading import load_job

    overrides = overrides_of(options)
    try:
        return load_job(file, overrides, options.only, index, options.full, frozen=frozen)
    except UserError as error:
        fitting = _labels_that_fit(file, overrides, options.full) if overrides and options.only is None and index is None else []
        if fitting:
            raise UserError(f"{error}; --set fits {', '.join(fitting)}: --only takes one") from None
        raise


def _labels_that_fit(file: str | Path, overrides: dict[str, Any], full: bool) -> list[str]:
    """The labels of the runs of a job in which these values can be set; [] if the job cannot be read without them either."""
    from mpi_compress.job.loading import load_job

    fitting = []
    with suppress(UserError):
        for label in dict.fromkeys(spec.label for spec in load_job(file, full=full).runs):
            with suppress(UserError):
                load_job(file, overrides, only=label, full=full)
                fitting.append(label)
    return fitting


def overrides_of(options: argparse.Namespace) -> dict[str, Any]:
    """The values of --set by dotted key."""
    return key_values(options.set, "--set ", "stop.rounds=100")


def key_values(pairs: list[str], option: str = "", example: str = "samples=1000") -> dict[str, Any]:
    """KEY=VALUE … with TOML values, or text where it is no TOML; UserError, with `option` and `example`, without "="."""
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


def time_of(text: str | None, option: str) -> float | None:
    """The seconds that an option gives, None if it is not given; UserError if it is no time."""
    from mpi_compress.core.expressions import seconds

    try:
        return seconds(text) if text else None
    except ValueError as error:
        raise UserError(f"{option}: {error}") from None


def ask_for_folder(file: Path, option: str = "-o") -> None:
    """On a terminal ask whether to make the folder of a file, if there is none; UserError if not. Elsewhere it is made."""
    folder = file.parent
    if folder.exists() or not (sys.stdin is not None and sys.stdin.isatty()):
        return
    if input(f"{folder}: there is no such folder; make it? [Y/n] ").strip().lower() not in ("", "y", "yes"):
        raise UserError(f"{option} {file}: there is no such folder, {folder}")


def text_file(file: Path, text: str, option: str = "-o") -> None:
    """Write a text and its folder; UserError if that cannot be."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{option} {file}: cannot be written: {error.strerror}") from None
