"""`mpi-compress archive JOB… -o FIG.zip`"""

from argparse import Namespace
from pathlib import Path

from mpi_compress.cli.parsing import load_one
from mpi_compress.core.errors import UserError, writing
from mpi_compress.core.progress import count_text
from mpi_compress.evidence.outcomes import job_files
from mpi_compress.report.archive import archive
from mpi_compress.report.citation import about_of


def act(options: Namespace) -> int:
    if options.set or options.only or options.index is not None or options.full:
        why = "`run` reruns everything of the file that is packed; write what --set, --only, --index or --full changes into a copy"
        raise UserError(f"archive: takes a job as its file has it: {why}")
    about, target = about_of(Path(options.about)) if options.about else None, Path(options.file)
    if options.publish and about is None:
        raise UserError(f"--publish {options.publish}: --about is needed too, with the title, creators and licence")
    jobs = {file: load_one(file, options) for file in job_files(options.jobs)}
    count = archive(jobs, Path(options.out), target, about)
    one = "" if len(jobs) == 1 else f"/{min(job.name for job in jobs.values())}"
    print(f"{target}: {count_text(count, 'result')}; `mpi-compress run {target}{one}` reruns them and compares")
    if options.publish and about is not None:
        file = target.with_suffix(f".{options.publish}.json")
        with writing(file):
            file.write_text(about.requests(target, options.publish), encoding="utf-8")
        print(f"{file}: what would be sent; nothing was")
    return 0
