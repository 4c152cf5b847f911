"""A job kept as it is: the file and the source of its plugins are copied, for tasks that start later."""

import shutil
from pathlib import Path

from mpi_compress.core.plugins import freeze_plugin
from mpi_compress.job.loading import FROZEN_JOB, Job


def freeze(file: Path, job: Job, folder: Path) -> None:
    """Copy a job's file and the modules of its plugins into a folder, for `load_job(…, frozen=folder)`.

    Data and other files that a job names are not copied: their content is in the ids of its runs, and a task whose run has another
    id than what was submitted refuses to play it.
    """
    shutil.copyfile(file, folder / FROZEN_JOB)
    for name in dict.fromkeys(name for spec in job.runs for name in spec.written.get("plugins", [])):
        freeze_plugin(name, folder)
