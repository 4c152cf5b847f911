"""What lies in a folder of results: every result, of whatever version, and what of it can be removed or moved."""

import os
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import h5py

from mpi_compress.core.errors import UserError
from mpi_compress.results.files import checkpoint_of, job_name, part_of
from mpi_compress.results.reader import attributes
from mpi_compress.results.status import State, state_of
from mpi_compress.results.writer import is_being_written

_SUFFIXES = (".h5", ".h5.part", ".h5.ckpt")


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
    def written(self) -> float:
        """When one of the files was last written, in seconds since the epoch."""
        return max((file.stat().st_mtime for file in self.files), default=0.0)

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes, {} where they cannot be read."""
        return next((found for file in self.files[:2] if (found := attributes(file))), {})

    @property
    def tables(self) -> dict[str, Any]:
        """The tables of the run as its job wrote them."""
        with suppress(tomllib.TOMLDecodeError, TypeError):
            return tomllib.loads(self.attrs.get("job", ""))
        return {}

    @property
    def state(self) -> State:
        """What its attributes tell: unlike `status_of`, this takes no longer for a result of many rows."""
        return state_of(self.attrs, self.is_being_written)

    @property
    def loss(self) -> float | None:
        """The last loss; None where there is none."""
        for file in self.files[:2]:
            with suppress(OSError, KeyError, RuntimeError, IndexError), h5py.File(file, "r", locking=False) as h5:
                return float(h5["trace/loss"][-1])
        return None

    @property
    def is_being_written(self) -> bool:
        part = part_of(self.result)
        return part.exists() and is_being_written(part)

    def remove(self) -> None:
        for file in self.files:
            file.unlink(missing_ok=True)


def entries(out: Path, below: Sequence[str] = ()) -> list[Entry]:
    """The results in a folder, or those of some jobs or files in it, in the order of their paths.

    Args:
        below: names of jobs, whose tuning trials are taken too, or paths of result files.

    Raises:
        UserError: there is nothing of that name.
    """
    if not out.is_dir():
        raise UserError(f"{out}: there is no such folder of results")
    if not below:
        return list(_in(out, out))
    found: dict[Path, Entry] = {}
    for name in below:
        place = Path(name)
        if place.is_file() and (result := _result(place)) is not None:
            own = [Entry(result, _job(result, out))]
        else:
            job = job_name(place) if place.suffix == ".toml" else name
            own = list(_in(out / job, out)) or list(_in(place, out))
        if not own:
            raise UserError(f"{name}: there is no result of this name, nor of a job of this name in {out}")
        found.update((entry.result, entry) for entry in own)
    return list(found.values())


def _in(folder: Path, out: Path) -> Iterator[Entry]:
    files = sorted(file for file in folder.rglob("*.h5*") if file.is_file()) if folder.is_dir() else []
    for result in dict.fromkeys(result for file in files if (result := _result(file)) is not None):
        yield Entry(result, _job(result, out))


def _result(file: Path) -> Path | None:
    """The name of the finished result that a file goes with; None if it goes with none."""
    for suffix in _SUFFIXES:
        if file.name.endswith(suffix):
            return file.with_name(file.name.removesuffix(suffix) + ".h5")
    return None


def _job(result: Path, out: Path) -> str:
    folder = Path(os.path.abspath(result.parent))
    inside = folder.is_relative_to(os.path.abspath(out))
    return folder.relative_to(os.path.abspath(out)).as_posix() if inside else folder.name


def move(job: str, to: str, out: Path) -> int:
    """Move the results of a job to another name, as its file was moved; the number of results.

    Raises:
        UserError: there are none, the name is no folder's, one is there already, or one is being written.
    """
    target = PurePath(to)
    if not target.parts or target.is_absolute() or ".." in target.parts:
        raise UserError(f"{to}: should name a job, such as sweep or sweep/steps")
    own = [entry for entry in entries(out, [job]) if entry.job == job or entry.job.startswith(f"{job}/")]
    if not own:
        raise UserError(f"{job}: no job of this name has results in {out}")
    places = [out / target / Path(entry.job).relative_to(job) for entry in own]
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
