"""`mpi-compress report [JOB…]`"""

from argparse import Namespace
from pathlib import Path

from mpi_compress import report
from mpi_compress.cli.parsing import ask_for_folder, overrides_of


def act(options: Namespace) -> int:
    ask_for_folder(Path(options.page))
    found = report.outcomes(report.job_files(options.jobs), Path(options.out), options.full, overrides_of(options), options.only)
    report.write(found, Path(options.page), options.title or None)
    if options.table:
        report.write_table(found, Path(options.table), options.title or None)
    if options.gallery:
        report.write_gallery(found, Path(options.gallery), options.title or None)
    print(*report.summary(found), options.page, sep="\n")
    return 0
