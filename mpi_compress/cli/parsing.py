"""Reads the arguments that several commands share: jobs with what is set in them, times, and files to write."""

import hashlib
import tomllib
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mpi_compress.core.errors import UserError
from mpi_compress.core.patterns import Choice
from mpi_compress.job.loading import Job, load_job, with_own_labels
from mpi_compress.job.protocol import OF_DATA
from mpi_compress.results.files import LETTERS, in_file_name


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
        return load_one(file, Namespace(**vars(options) | {"only": only}), index)

    return with_own_labels(dict.fromkeys(files), read, options.only)


def overrides_of(options: Namespace) -> dict[str, Any]:
    """The values of --set by dotted key."""
    return key_values(options.set, "--set ", "stop.rounds=100")


def set_in_name(options: Namespace) -> str:
    """What --set changes in a file's name: "-algorithm.step=2-rounds=100", "" for nothing; of data that `Job.on` names nothing."""
    typed = dict(pair.partition("=")[::2] for pair in options.set)
    named = sorted(typed.keys() - {f"data.{name}" for name in OF_DATA})
    whole = "".join(f"-{key.removeprefix('stop.')}={typed[key]}" for key in named)
    name = in_file_name(whole)
    if len(name) > LETTERS:
        name = f"{name[:LETTERS]}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"
    return f"-{name}" if name else ""


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
