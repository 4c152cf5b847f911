"""The results of a job that are there."""

from contextlib import suppress
from pathlib import Path

from mpi_compress.core.errors import UserError
from mpi_compress.job.loading import Job
from mpi_compress.results.files import part_of, result_file
from mpi_compress.results.reader import Run, read


def results_of(job: Job, out: Path, unfinished: bool = False) -> list[Run]:
    """The results of a job that are there; with `unfinished`, also what runs have written so far.

    Raises:
        UserError: there are none.
    """
    files = [result_file(job.name, spec.label, spec.run_id, out) for spec in job.runs]
    found = [run for file in files if (run := _result(file, unfinished)) is not None]
    if not found:
        raise UserError(f"no results of '{job.name}' in {out}; `mpi-compress run` makes them")
    return found


def _result(file: Path, unfinished: bool) -> Run | None:
    if unfinished and not file.exists():
        with suppress(UserError):  # there is none, or it was completed meanwhile
            part = read(part_of(file))
            if "round" in part.trace:
                return part
    return read(file) if file.exists() else None
