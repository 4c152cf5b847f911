"""Runs that need not be executed: their results are there, under this job or another one."""

import json
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import print_line
from mpi_compress.engine.watching import Watch
from mpi_compress.job.runs import RunSpec
from mpi_compress.preparing.wanted import OF_OPTIMUM
from mpi_compress.results import twins
from mpi_compress.results.columns import LEFT_OUT
from mpi_compress.results.files import checkpoint_of, part_of
from mpi_compress.results.reader import LABEL, attributes, read
from mpi_compress.saving.checkpoint import remove_checkpoint


def done(files: list[Path], specs: list[RunSpec], out: Path, watch: Watch, quiet: bool) -> list[bool]:
    """Which runs have a result, their own or one that another job has of the same run, which is linked. At rank 0.

    A result of another exchange counts as none, since allgather has no messages down to count.
    """
    others = cache(lambda: twins.by_run_id(out))
    return [_is_done(file, spec, others, watch, quiet) for file, spec in zip(files, specs, strict=True)]


def _is_done(file: Path, spec: RunSpec, others: Callable[[], dict[str, list[Path]]], watch: Watch, quiet: bool) -> bool:
    if file.exists():
        if not serves(file, spec, watch):
            if not quiet and (before := _exchange(attributes(file))) not in ("", spec.workers.exchange):
                print_line(f"{spec.label}: {file} is of exchange = {before!r}; it is run again by {spec.workers.exchange!r}")
            return False
        with suppress(OSError):
            if not part_of(file).exists():  # a kill left the checkpoint in the run's last moment; else it begins again
                remove_checkpoint(checkpoint_of(file))
        return True
    if part_of(file).exists() or checkpoint_of(file).exists():
        return False
    for other in others().get(spec.run_id, ()):
        if serves(other, spec, watch) and _is_whole(other, spec):
            overridden = json.dumps(spec.overridden) if spec.overridden else ""
            try:
                twins.link(other, file, {LABEL: spec.label, "job": spec.toml(), "overridden": overridden})
            except OSError:
                return False  # running it says what cannot be written
            if not quiet:
                print_line(f"{spec.label}: {other} is the same run; its result is taken")
            return True
    return False


def serves(file: Path, spec: RunSpec, watch: Watch) -> bool:
    """True if a result is there, of the run's exchange, with the columns that its job and the caller ask for now."""
    if not file.exists():
        return False
    attrs = attributes(file)
    left_out = not spec.asked.isdisjoint(OF_OPTIMUM) and attrs.get("f_star_source") == LEFT_OUT
    return not left_out and _exchange(attrs) in ("", spec.workers.exchange) and watch.is_served_by(attrs, spec)


def _is_whole(other: Path, spec: RunSpec) -> bool:
    """True if a result can be read and is of this run; a line says why it cannot be read."""
    try:
        return read(other).attrs.get("run_id") == spec.run_id
    except UserError as error:
        print_line(f"{spec.label}: {error}; it is not taken")
        return False


def _exchange(attrs: Mapping[str, Any]) -> str:
    """How the messages of a result went; "" if it does not say."""
    try:
        workers = tomllib.loads(attrs["job"]).get("workers", {})
    except (KeyError, TypeError, ValueError):
        return ""
    return str(workers.get("exchange", "p2p"))
