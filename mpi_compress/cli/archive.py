"""`mpi-compress archive JOB -o FIG.zip`"""

from argparse import Namespace
from pathlib import Path

from mpi_compress.cli.parsing import load
from mpi_compress.core.errors import UserError
from mpi_compress.report.archive import archive


def act(options: Namespace) -> int:
    if options.set or options.only or options.index is not None or options.full:
        why = "`run` reruns everything of the file that is packed; write what --set, --only, --index or --full changes into a copy"
        raise UserError(f"archive: takes a job as its file has it: {why}")
    count = archive(Path(options.job), load(options), Path(options.out), Path(options.file))
    print(f"{options.file}: {count} results; `mpi-compress run {options.file}` reruns them and compares")
    return 0
