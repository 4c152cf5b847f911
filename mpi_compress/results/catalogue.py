"""What lies in a folder of results: every result, of whatever version, and what of it can be removed or moved."""

import json
import os
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import h5py

from mpi_compress.core import seals
from mpi_compress.core.errors import UserError, system_text
from mpi_compress.results import hdf5
from mpi_compress.results.files import ASIDE, TRIALS, checkpoint_of, job_name, names_folder, part_of, result_of, results_below
from mpi_compress.results.locks import is_being_written
from mpi_compress.results.probing import crashes
from mpi_compress.results.reader import LABEL, read
from mpi_compress.results.status import State, state_of


@dataclass(frozen=True)
class Entry:
    """A result in a folder: its file, the unfinished one and the checkpoint of the same name, as far as they exist."""

    result: Path  # the name of the finished file, whether it exists or not
    job: str

    @property
    def files(self) -> list[Path]:
        return [file for file in (self.result, part_of(self.result), checkpoint_of(self.result)) if file.exists()]

    @property
    def size(self) -> int:
        """Bytes on the disk."""
        return sum(file.stat().st_size for file in self.files)

    @property
    def kept(self) -> int:
        """The part of them that is the last state of a finished run, or the checkpoint of another one."""
        state = checkpoint_of(self.result)
        return state.stat().st_size if state.exists() else 0

    @property
    def last_state(self) -> Path | None:
        """The last state of a complete run, from which a longer one can go on; None where there is none."""
        state = checkpoint_of(self.result)
        return state if self.result.exists() and state.exists() and not part_of(self.result).exists() else None

    @property
    def written(self) -> float:
        """When one of the files was last written, in seconds since the epoch."""
        return max((file.stat().st_mtime for file in self.files), default=0.0)

    @cached_property
    def _seen(self) -> tuple[dict[str, Any], float | None]:
        """The attributes and the last loss, as far as they can be read; unlike `status_of`, this takes no longer for many rows."""
        for file in self.files[:2]:
            if not self.is_being_written and crashes(file):
                continue
            with suppress(Exception), h5py.File(file, "r", locking=False) as h5:  # of a damaged file HDF5 raises many types
                if attrs := dict(h5.attrs):
                    with suppress(Exception):
                        return attrs, float(hdf5.array(hdf5.within(h5, "trace"), "loss", 8 * self.size)[-1])
                    return attrs, None
        return {}, None

    @property
    def label(self) -> str:
        label = str(self._seen[0].get(LABEL, self.result.stem))
        return label + " (set aside)" * (self.result.suffix == ASIDE)

    @property
    def tables(self) -> dict[str, Any]:
        """The tables of the run as its job wrote them."""
        with suppress(ValueError, TypeError, AttributeError):  # a damaged attribute may have any type
            return tomllib.loads(self._seen[0].get("job", ""))
        return {}

    @property
    def overridden(self) -> dict[str, Any]:
        """What was set in the run from outside its job, as by --set, by dotted key."""
        with suppress(ValueError, TypeError):
            return dict(json.loads(self._seen[0].get("overridden") or "{}"))
        return {}

    @property
    def state(self) -> State:
        """What its attributes tell."""
        return state_of(self._seen[0], self.is_being_written)

    @property
    def loss(self) -> float | None:
        """The last loss; None where there is none."""
        return self._seen[1]

    @property
    def is_trial(self) -> bool:
        """True for a trial of [tune]."""
        return self.job.endswith(f"/{TRIALS}")

    @property
    def is_being_written(self) -> bool:
        part = part_of(self.result)
        return part.exists() and is_being_written(part)

    def damage(self) -> Iterator[str]:
        """A line for each of its files that is not as it was written, or has no checksums."""
        for file in self.files:
            try:
                if file.suffix == ".ckpt":
                    if not seals.holds(file, self.result.stem.rpartition("-")[2]):
                        yield f"{file}: is damaged, or of another version"
                elif not read(file).has_checksums:
                    yield f"{file}: has no checksums: an earlier version wrote this file"
            except UserError as error:
                yield str(error)
            except OSError as error:
                yield f"{file}: cannot be read: {system_text(error)}"

    def remove(self) -> None:
        """Remove the files; UserError where that is not permitted."""
        for file in self.files:
            remove(file)


def remove(file: Path) -> None:
    """Remove a file; UserError where that is not permitted."""
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"{file}: cannot be removed: {system_text(error)}") from None


def entries(out: Path, below: Sequence[str] = ()) -> list[Entry]:
    """The results in a folder, or of some jobs, their tuning trials too, or files `below` it, by path; UserError without any."""
    if not out.is_dir():
        raise UserError(f"{out}: there is no such folder of results")
    if not below:
        return _in(out, out)
    found = dict[Path, Entry]()
    for name in below:
        place = Path(name)
        if not place.is_dir() and (result := result_of(place)) and (entry := _entry(result, out)).files:
            own = [entry]
        else:
            job = job_name(place) if place.suffix == ".toml" else name
            own = _in(out / job, out) or _in(place, out)
        if not own:
            raise UserError(f"{name}: there is no result of this name, nor of a job of this name in {out}")
        found.update((entry.result, entry) for entry in own)
    return list(found.values())


def _in(folder: Path, out: Path) -> list[Entry]:
    return [_entry(result, out) for result in results_below(folder)]


def _entry(result: Path, out: Path) -> Entry:
    folder, of_all = (Path(os.path.abspath(place)) for place in (result.parent, out))
    return Entry(result, folder.relative_to(of_all).as_posix() if folder.is_relative_to(of_all) else folder.name)


def move(job: str, to: str, out: Path) -> int:
    """Move the results of a job to another name, as its file was moved; the number of results. UserError: there are none, the name
    is no folder's, one is there already, or one is being written."""
    if not names_folder(to):
        raise UserError(f"{to}: should name a job, such as sweep or sweep/steps")
    own = [entry for entry in entries(out, [job]) if entry.job == job or entry.job.startswith(f"{job}/")]
    if not own:
        raise UserError(f"{job}: no job of this name has results in {out}")
    places = [out / to / Path(entry.job).relative_to(job) for entry in own]
    for entry, place in zip(own, places, strict=True):
        if entry.is_being_written:
            raise UserError(f"{entry.result}: is being written; wait for it, or end it")
        if taken := [place / file.name for file in entry.files if (place / file.name).exists()]:
            raise UserError(f"{taken[0]}: is there already; nothing is moved")
    for entry, place in zip(own, places, strict=True):
        place.mkdir(parents=True, exist_ok=True)
        for file in entry.files:
            os.replace(file, place / file.name)
    remove_empty_folders(out)
    return len(own)


def remove_empty_folders(out: Path) -> None:
    """Remove the folders below `out` in which nothing is left."""
    for folder in sorted((f for f in out.rglob("*") if f.is_dir()), reverse=True):
        with suppress(OSError):
            folder.rmdir()
