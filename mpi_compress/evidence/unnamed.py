"""Results that no job names any more."""

from collections.abc import Sequence
from pathlib import Path

from mpi_compress.core.errors import UserError
from mpi_compress.evidence.outcomes import has_full, loaded
from mpi_compress.job.loading import Job
from mpi_compress.job.trials import possible
from mpi_compress.results.catalogue import Entry, entries
from mpi_compress.results.files import CHECKED, result_file


def unnamed(files: Sequence[Path], out: Path) -> list[Entry]:
    """The results in a folder that are of no run, or trial, of these jobs, at small or full size.

    Raises:
        UserError: a job cannot be read, or a set that it names is not here: what it names cannot be said.
    """
    named: set[Path] = set()
    for file in files:
        try:
            small = loaded(file, False)
            for job in (small, loaded(file, True)) if has_full(file) else (small,):
                named |= _named(job, out)
        except UserError as error:
            text = str(error).removeprefix(f"{file}: ")
            raise UserError(f"{file}: what it names cannot be said, and nothing is removed: {text}") from None
    return [entry for entry in entries(out) if entry.result.resolve() not in named]


def _named(job: Job, out: Path) -> set[Path]:
    trials = [(f"{job.name}/tuning", trial) for spec in job.runs if spec.tune is not None for trial in possible(spec)]
    runs = [(job.name, spec) for spec in job.runs] + trials
    folders = (out, out / CHECKED)
    return {result_file(name, spec.label, spec.run_id, folder).resolve() for name, spec in runs for folder in folders}
