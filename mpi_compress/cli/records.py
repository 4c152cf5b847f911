"""`mpi-compress records check JOB`"""

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from mpi_compress.cli.parsing import load
from mpi_compress.core.clock import Laps
from mpi_compress.core.ending import EXIT_FAILED
from mpi_compress.core.errors import UserError
from mpi_compress.core.signals import BEGUN, Interrupts
from mpi_compress.results.files import CHECKED

if TYPE_CHECKING:
    from mpi_compress.job.loading import Job


def act_check(options: Namespace) -> int:
    with Interrupts(None).caught() as interrupts:
        from mpi_compress.engine.playing import How
        from mpi_compress.engine.runner import run_as
        from mpi_compress.evidence.verdicts import check_records
        from mpi_compress.exchange.ranks import launched
        from mpi_compress.preparing import compiling

        ranks, out = launched(), Path(options.out) / CHECKED
        ranks.on_root(lambda: _load(options).name)  # rank 0 alone reports what is wrong with a job
        job = _load(options)
        how = How(ranks, options.fresh, options.quiet, False, interrupts, laps=Laps(BEGUN))
        with compiling.shown(not how.tells):
            runs = run_as(job, out, how)
    found = ranks.on_root(lambda: [*check_records(job, runs)])
    if ranks.is_root:
        print(*(line for _, line in found), sep="\n")
    if ranks.on_root(lambda: any(each.status not in ("complete", "stopped") for each in runs)):
        return EXIT_FAILED
    return 0 if all(holds for holds, _ in found) else 1


def _load(options: Namespace) -> "Job":
    """The job with the runs that its records name, or those of them that the options choose."""
    job = load(options)
    if not job.records:
        raise UserError(f"{options.job}: claims no record; [[record]] states one")
    named = [label for label in dict.fromkeys(record.run for record in job.records) if label in {spec.label for spec in job.runs}]
    if not named:
        raise UserError(f"{options.job}: no record is about the chosen runs")
    return job.only(named)
