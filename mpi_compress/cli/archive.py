"""`mpi-compress archive JOB -o FIG.zip`"""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from mpi_compress.cli.parsing import add_job, load
from mpi_compress.core.errors import UserError


def add_arguments(parser: ArgumentParser) -> None:
    add_job(parser)
    text = "the file that is written: job, plugins, results and a checklist"
    parser.add_argument("-o", dest="file", required=True, metavar="FIG.zip", help=text)


def act(options: Namespace) -> int:
    from mpi_compress.report.archive import archive

    if options.set or options.full:
        raise UserError("archive: takes a job as its file has it: write what --set or --full changes into a copy of the job")
    count = archive(Path(options.job), load(options), Path(options.out), Path(options.file))
    print(f"{options.file}: {count} results; `mpi-compress run {options.file}` plays them again and compares")
    return 0
