"""`mpi-compress records check JOB`, and `records profile JOB|FOLDER…`"""

import sys
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
        from mpi_compress.engine.request import Request
        from mpi_compress.engine.runner import run_as
        from mpi_compress.evidence.verdicts import check_records
        from mpi_compress.exchange.ranks import launched
        from mpi_compress.preparing import compiling

        ranks, out = launched(), Path(options.out) / CHECKED
        ranks.on_root(lambda: _load(options).name)  # rank 0 alone reports what is wrong with a job
        job = _load(options)
        request = Request(out, ranks, interrupts, options.fresh, options.quiet, laps=Laps(BEGUN))
        with compiling.shown(not request.tells):
            runs = run_as(job, request)
    found = ranks.on_root(lambda: [*check_records(job, runs)])
    if ranks.is_root:
        print(*([job.protocol] if job.protocol else []), *(line for _, line in found), sep="\n")
    if ranks.on_root(lambda: any(each.status not in ("complete", "stopped") for each in runs)):
        return EXIT_FAILED
    return 0 if all(holds for holds, _ in found) else 1


def act_profile(options: Namespace) -> int:
    from mpi_compress import report
    from mpi_compress.cli.results_of import found
    from mpi_compress.core.tables import shown
    from mpi_compress.core.terminal import say
    from mpi_compress.evidence.profile import profile
    from mpi_compress.results.targets import Target, rising, typed

    asked = [typed(text) for text in options.to or [f"suboptimality={level}" for level in ("1e-3", "1e-6", "1e-9", "1e-12")]]
    options.what, options.with_plugins = list(map(str, report.job_files(options.jobs))), False
    runs = found(options, [column for column, _ in asked])
    targets = [Target.of(column, level, rising(runs)) for column, level in asked]
    profiles = [profile(runs, targets, by) for by in options.by or ["wire_bits", "wire_bits_up"]]
    for each in profiles:
        say(f"{each.caption}:", *shown(sys.stdout, each.heads, each.cells))
    if options.figure:
        from mpi_compress.figures import plotting
        from mpi_compress.figures.of_run import draw

        plotting.save(draw(profiles), Path(options.figure))
        print(options.figure)
    return 0


def _load(options: Namespace) -> "Job":
    """The job with the runs that its records name, or those of them that the options choose."""
    job = load(options)
    if not job.records:
        raise UserError(f"{options.job}: claims no record; [[record]] states one")
    named = [label for label in dict.fromkeys(record.run for record in job.records) if label in {spec.label for spec in job.runs}]
    if not named:
        raise UserError(f"{options.job}: no record is about the chosen runs")
    return job.only(named)
