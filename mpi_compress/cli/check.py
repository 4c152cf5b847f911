"""`mpi-compress check JOB`: a job's claims and records against its results. What parts state is what `check-part` asks."""

import sys
from argparse import Namespace
from dataclasses import replace

from mpi_compress.cli.parsing import load_one
from mpi_compress.cli.results_of import with_gaps
from mpi_compress.core.errors import UserError
from mpi_compress.core.terminal import GREEN, RED, coloured, say
from mpi_compress.evidence.outcomes import old_metrics, results_of
from mpi_compress.evidence.verdicts import Verdict, answerable, check, check_records
from mpi_compress.problem.datasets.said import line_of


def act(options: Namespace) -> int:
    job = load_one(options.job, options)
    if not (job.claims or job.records):
        raise UserError(f"{options.job}: makes no claims; [[claim]] states one, and [[record]] a record")
    if options.only is not None:
        job = replace(job, claims=answerable(job), records=[r for r in job.records if r.run in {spec.label for spec in job.runs}])
        if not (job.claims or job.records):
            raise UserError(f"{options.job}: no claim is about {' and '.join(map(repr, options.only))} alone; leave --only out")
    asked = frozenset[str]().union(*(spec.asked for spec in job.runs))
    runs = with_gaps(results_of(job, options.out), asked, job.runs)
    verdicts, records = check(job, runs), [*check_records(job, runs)]
    say(*filter(None, dict.fromkeys(map(line_of, runs))), *old_metrics(runs), *map(_coloured, verdicts))
    say(*([str(job.protocol)] if job.protocol and records else []), *(line for _, line in records))
    return 1 if False in [*(verdict.holds for verdict in verdicts), *(holds for holds, _ in records)] else 0


def _coloured(verdict: Verdict) -> str:
    """A verdict as it is printed, with its outcome in green or red."""
    colour = {True: GREEN, False: RED, None: ""}[verdict.holds]
    head, outcome, rest = str(verdict).rpartition(f": {verdict.outcome}")
    return head + coloured(outcome, colour, sys.stdout) + rest
