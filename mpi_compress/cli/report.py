"""`mpi-compress report [JOB…]`"""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from mpi_compress.cli.parsing import add_page


def add_arguments(parser: ArgumentParser) -> None:
    add_page(parser)


def act(options: Namespace) -> int:
    from mpi_compress import report

    found = report.outcomes(report.job_files(options.jobs), Path(options.out), options.full)
    report.write(found, Path(options.page))
    if options.table:
        report.write_table(found, Path(options.table))
    if options.gallery:
        report.write_gallery(found, Path(options.gallery))
    for line in report.summary(found):
        print(line)
    print(options.page)
    return 0
