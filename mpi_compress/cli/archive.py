"""`mpi-compress archive JOB… -o FIG.zip`"""

from argparse import Namespace

from mpi_compress.core.progress import count_text
from mpi_compress.core.terminal import say
from mpi_compress.evidence.outcomes import job_files
from mpi_compress.job.loading import load_job
from mpi_compress.report.archive import archive
from mpi_compress.report.citation import about_of


def act(options: Namespace) -> int:
    about = about_of(options.about) if options.about else None
    count = archive({file: load_job(file) for file in job_files(options.jobs)}, options.out, options.file, about)
    say(f"{options.file}: {count_text(count, 'result')}; its README.md says how they are run again and compared")
    return 0
