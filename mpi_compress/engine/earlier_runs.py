"""Runs that need not be executed: their results are there, of this job or of another one, as one file under both names."""

import json
import os
import shutil
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import h5py

from mpi_compress.core import seals
from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import print_line
from mpi_compress.engine.request import Request
from mpi_compress.job.runs import RunSpec
from mpi_compress.preparing.problems import OF_OPTIMUM
from mpi_compress.results import checksums
from mpi_compress.results.columns import LEFT_OUT
from mpi_compress.results.files import checkpoint_of, part_of
from mpi_compress.results.reader import LABEL, attributes, read
from mpi_compress.saving.checkpoint import remove_checkpoint


def done(specs: Sequence[RunSpec], files: Sequence[Path], request: Request) -> list[bool]:
    """Which runs have a result, their own or one that another job has of the same run, which is linked. At rank 0. A
    result of another exchange counts as none, since allgather has no messages down to count."""
    if request.fresh:
        return [False for _ in files]
    others = cache(lambda: _by_run_id(request.out))
    return [_is_done(file, spec, others, request.quiet) for file, spec in zip(files, specs, strict=True)]


def _is_done(file: Path, spec: RunSpec, others: Callable[[], dict[str, list[Path]]], quiet: bool) -> bool:
    if file.exists():
        if not serves(file, spec):
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
        if serves(other, spec) and _is_whole(other, spec):
            overridden = json.dumps(spec.overridden) if spec.overridden else ""
            try:
                _link(other, file, {LABEL: spec.label, "job": spec.toml(), "overridden": overridden})
            except OSError:
                return False  # running it says what cannot be written
            if not quiet:
                print_line(f"{spec.label}: {other} is the same run; its result is taken")
            return True
    return False


def serves(file: Path, spec: RunSpec) -> bool:
    """True if a result is there, of the run's exchange, with the columns that its job asks for now."""
    if not file.exists():
        return False
    attrs = attributes(file)
    left_out = not spec.asked.isdisjoint(OF_OPTIMUM) and attrs.get("f_star_source") == LEFT_OUT
    kept = json.loads(attrs.get("metrics", "{}"))
    has_metrics = all(kept.get(column) == mark for column, mark in spec.marks.items())
    ended_by_stop = "until" not in attrs  # in earlier versions a caller's function could end a run
    return not left_out and has_metrics and ended_by_stop and _exchange(attrs) in ("", spec.workers.exchange)


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


def _by_run_id(out: Path) -> dict[str, list[Path]]:
    """All finished results below a folder, by the run id at the end of their names."""
    found: dict[str, list[Path]] = {}
    for file in sorted(out.rglob("*-*.h5")) if out.is_dir() else ():
        found.setdefault(file.stem.rpartition("-")[2], []).append(file)
    return found


def _link(other: Path, file: Path, attrs: Mapping[str, str]) -> None:
    """Give a finished result a second name; where some of its attributes should differ, such as its label, a copy has them.
    `attrs`: what they should be; "": the result should have none of that name. OSError: it cannot be written."""
    file.parent.mkdir(parents=True, exist_ok=True)
    own = attributes(other)
    changed = {name: value for name, value in attrs.items() if own.get(name, "") != value}
    if not changed:
        with suppress(OSError):  # on file systems without hard links it is copied
            os.link(other, file)
            return
    new = file.with_name(file.name + ".new")
    new.unlink(missing_ok=True)  # it may be a link
    shutil.copyfile(other, new)
    if changed:
        _change(new, changed)
    os.replace(new, file)


def _change(file: Path, changed: Mapping[str, str]) -> None:
    """Write other attributes, and their checksums where the file has any."""
    with h5py.File(file, "r+", locking=False) as h5:
        stored = json.loads(h5.attrs.get(checksums.ATTRIBUTE, "null"))
        for name, value in changed.items():
            if value:
                h5.attrs[name] = value
            else:
                del h5.attrs[name]
        if stored is None:
            return
        kept = {name: value for name, value in stored["attributes"].items() if name not in changed}
        stored["attributes"] = kept | checksums.of_attributes({name: value for name, value in changed.items() if value})
        h5.attrs[checksums.ATTRIBUTE] = json.dumps(stored)
    seals.seal(file)
