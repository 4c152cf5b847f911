"""`mpi-compress reproduce [JOB…]`"""

from argparse import Namespace
from functools import partial
from pathlib import Path

from mpi_compress import report
from mpi_compress.cli import report as report_command
from mpi_compress.cli.parsing import overrides_of
from mpi_compress.core.ending import EXIT_FAILED
from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import print_line
from mpi_compress.core.signals import EXIT_STOPPED, Interrupted
from mpi_compress.evidence.outcomes import loaded
from mpi_compress.planning import estimates, pool


def act(options: Namespace) -> int:
    if options.at_once < 1:
        raise UserError(f"--at-once {options.at_once}: at least 1 job is required")
    files, overrides = report.job_files(options.jobs), overrides_of(options)
    words = [f"--{name}={value}" for name in ("only", "set") for value in getattr(options, name) or ()]
    if options.only is not None:  # those that have such a run
        files = [each.file for each in report.outcomes(files, Path(options.out), options.full, overrides, options.only)]
    report.plotting_library()  # what is not installed is reported before hours of running, not after
    if options.full:
        for line in estimates.text([*estimates.estimates(files, Path(options.out), True)]):
            print_line(line)
    if options.get:
        pool.get_missing(files, print_line)
    try:
        load = partial(loaded, overrides=overrides, only=options.only)
        status = pool.reproduce(files, Path(options.out), options.full, options.at_once, print_line, load, words)
    except Interrupted as interrupted:
        print_line(f"stopped by {interrupted}; what was under way is saved, and the same command goes on")
        print_line("`mpi-compress report` draws what is done")
        return EXIT_STOPPED
    report_command.act(options)
    failed = [file for file, found in status.items() if found not in (0, 2)]
    for file in failed:
        print(f"{file}: failed, or a run of it diverged; `mpi-compress plan {file}` says why")
    return EXIT_FAILED if failed else 0
