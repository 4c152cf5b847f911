"""What was submitted: a folder for each submission, with its script, the job as it was, and a note of which run is which task.

The folders are `<results of the job>/submitted/<1, 2, …>`. A note is written before anything is submitted and again when SLURM has
given its number, each time whole or not at all.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

from mpi_compress.cluster.batch import Array
from mpi_compress.core import seals
from mpi_compress.core.errors import UserError
from mpi_compress.job.runs import RunSpec
from mpi_compress.results.locks import locked, whole

NOTE = "note.json"
_FOLDER = "submitted"


@dataclass(frozen=True)
class Note:
    """The note of one submission."""

    file: Path
    arrays: list[Array]  # that were handed to SLURM, or were about to be

    def write(self) -> None:
        """Write the note, whole or not at all; OSError where that is not possible."""
        with whole(self.file) as out:
            out.write(json.dumps([*map(vars, self.arrays)], indent=1).encode())

    def run_ids(self) -> dict[int, str]:
        """Number of a run in its job → run id."""
        return {array.first + task: key.partition(" ")[0] for array in self.arrays for key, task in array.tasks.items()}


def key_of(spec: RunSpec) -> str:
    """The key of a run in notes: its id, and its label, in which runs of one id differ."""
    return f"{spec.run_id} {spec.label}"


def new_note(folder: Path, parts: Sequence[Array]) -> Note:
    """A note that is yet to be written, in a new folder below the `folder` of a job's results."""
    number = max((int(place.name) for place in _places(folder)), default=0) + 1
    place = folder / _FOLDER / str(number)
    place.mkdir(parents=True)
    mark = f"mpi-compress-{uuid4().hex[:12]}"
    return Note(place / NOTE, [replace(part, mark=f"{mark}-{k}") for k, part in enumerate(parts)])


def notes(folder: Path) -> list[Note]:
    """The notes of all submissions of a job, oldest first; a UserError that names a note which cannot be read."""
    return [read_note(place / NOTE) for place in _places(folder) if (place / NOTE).exists()]


def read_note(file: Path) -> Note:
    """A note; a UserError that names it if it cannot be read."""
    why = "it is not as it was written"
    try:
        text = seals.content(file)
    except OSError as error:
        text, why = None, str(error.strerror)
    if text is None:
        remedy = "remove it once SLURM's queue has no task of this job"
        raise UserError(f"{file}: this note of what was submitted cannot be read ({why}); {remedy}")
    return Note(file, [Array(**table) for table in json.loads(text)])


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Keep others from submitting the same job meanwhile; UserError if somebody does, or nothing can be written into `folder`."""
    try:
        (folder / _FOLDER).mkdir(parents=True, exist_ok=True)
        opened = locked(folder / _FOLDER / ".lock", os.O_RDWR | os.O_CREAT)
    except BlockingIOError:
        raise UserError(f"{folder}: somebody else is submitting this job; try again when that has ended") from None
    except OSError as error:
        raise UserError(f"{folder}: nothing can be written there: {error.strerror}") from None
    try:
        yield
    finally:
        os.close(opened)


def _places(folder: Path) -> list[Path]:
    """The folders of submissions, oldest first."""
    return sorted((place for place in (folder / _FOLDER).glob("*") if place.name.isdecimal()), key=lambda place: int(place.name))
