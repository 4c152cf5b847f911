"""Reads the arguments that several commands share: jobs with what is set in them, times, and files to write."""

import tomllib
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mpi_compress.core.errors import UserError
from mpi_compress.core.patterns import Choice
from mpi_compress.job.loading import Job, load_job, with_own_labels


def load(options: Namespace, frozen: Path | None = None) -> Job:
    """The job of a command that takes one, or as it is frozen in a folder."""
    return load_one(options.job, options, options.index, frozen)


def load_one(file: str | Path, options: Namespace, index: int | None = None, frozen: Path | None = None) -> Job:
    """One of the jobs that a command is given, with --set, --only and --full."""
    overrides = overrides_of(options)
    try:
        return load_job(file, overrides, options.only, index, options.full, frozen=frozen)
    except UserError as error:
        for (table, _, name), value in ((key.rpartition("."), value) for key, value in overrides.items()):
            if name in ("name", "model") and f"{table}: no key called" in str(error):
                raise UserError(f"{error}; --set '{table}={{{name}=\"{value}\"}}' replaces the whole table") from None
        raise


def load_all(files: Iterable[str], options: Namespace, index: int | None = None) -> dict[str, Job]:
    """Jobs by their files; those that have no run of --only are left out where another has one."""

    def read(file: str, only: Choice) -> Job:
        return load_one(file, Namespace(**{**vars(options), "only": only}), index)

    return with_own_labels(dict.fromkeys(files), read, options.only)


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
