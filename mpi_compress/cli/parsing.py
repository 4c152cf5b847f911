"""Reads the arguments that several commands share: jobs with what is set in them, times, and files to write."""

import sys
import tomllib
from argparse import Namespace
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from mpi_compress.core.errors import UserError
from mpi_compress.job.loading import Job, NoSuchLabel, load_job


def load(options: Namespace, frozen: Path | None = None) -> Job:
    """The job of a command that takes one, or as it is frozen in a folder."""
    return load_one(options.job, options, options.index, frozen)


def load_one(file: str | Path, options: Namespace, index: int | None = None, frozen: Path | None = None) -> Job:
    """One of the jobs that a command is given, with --set, --only and --full."""
    overrides = overrides_of(options)
    try:
        return load_job(file, overrides, options.only, index, options.full, frozen=frozen)
    except UserError as error:
        fitting = _labels_that_fit(file, overrides, options.full) if overrides and options.only is None and index is None else []
        if fitting:
            raise UserError(f"{error}; --set fits {', '.join(fitting)}: --only takes one") from None
        for (table, _, name), value in ((key.rpartition("."), value) for key, value in overrides.items()):
            if name in ("name", "model") and f"{table}: no key called" in str(error):
                raise UserError(f"{error}; --set '{table}={{{name}=\"{value}\"}}' replaces the whole table") from None
        raise


def load_all(files: Iterable[str], options: Namespace, index: int | None = None) -> dict[str, Job]:
    """Jobs by their files; those that have no run of --only are left out where another has one."""
    found, without = dict[str, Job](), []
    for file in dict.fromkeys(files):
        try:
            found[file] = load_one(file, options, index)
        except NoSuchLabel as error:
            without.append(error)
    if without and not found:
        raise without[0]
    return found


def _labels_that_fit(file: str | Path, overrides: dict[str, Any], full: bool) -> list[str]:
    """The labels of the runs of a job in which these values can be set; [] if the job cannot be read without them either."""
    fitting = []
    with suppress(UserError):
        for label in dict.fromkeys(spec.label for spec in load_job(file, full=full).runs):
            with suppress(UserError):
                load_job(file, overrides, only=label, full=full)
                fitting.append(label)
    return fitting


def overrides_of(options: Namespace) -> dict[str, Any]:
    """The values of --set by dotted key."""
    return key_values(options.set, "--set ", "stop.rounds=100")


def key_values(pairs: list[str], option: str = "", example: str = "samples=1000") -> dict[str, Any]:
    """KEY=VALUE … with TOML values, or text where it is no TOML; UserError, with `option` and `example`, without "="."""
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise UserError(f"{option}{pair}: KEY=VALUE is required, such as {example}")
        try:
            found[key] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            found[key] = text
    return found


def ask_for_folder(file: Path, option: str = "-o") -> None:
    """On a terminal ask whether to make the folder of a file, if there is none; UserError if not. Elsewhere it is made."""
    folder = file.parent
    if folder.exists() or not (sys.stdin is not None and sys.stdin.isatty()):
        return
    if input(f"{folder}: there is no such folder; make it? [Y/n] ").strip().lower() not in ("", "y", "yes"):
        raise UserError(f"{option} {file}: there is no such folder, {folder}")
