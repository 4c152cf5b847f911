"""`mpi-compress check JOB`: a job's claims against its results. What parts state is another question, which `check-part` asks."""

from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from mpi_compress.cli.parsing import load_one
from mpi_compress.cli.results_of import with_gaps
from mpi_compress.core.errors import UserError
from mpi_compress.evidence.outcomes import results_of
from mpi_compress.evidence.verdicts import answerable, check
from mpi_compress.problem.datasets.said import line_of


def act(options: Namespace) -> int:
    job = load_one(options.job, options)
    if not job.claims:
        raise UserError(f"{options.job}: makes no claims; [[claim]] states one")
    if options.only is not None:
        job = replace(job, claims=answerable(job))
        if not job.claims:
            raise UserError(f"{options.job}: no claim is about {' and '.join(map(repr, options.only))} alone; leave --only out")
    asked = frozenset[str]().union(*(spec.asked for spec in job.runs))
    runs = with_gaps(results_of(job, Path(options.out)), asked, job.runs)
    verdicts = check(job, runs)
    print(*filter(None, dict.fromkeys(map(line_of, runs))), *verdicts, sep="\n")
    return 1 if any(v.holds is False for v in verdicts) else 0
