"""`mpi-compress submit JOB`"""

import shlex
from argparse import Namespace
from dataclasses import fields
from pathlib import Path

from mpi_compress.cli.parsing import load
from mpi_compress.cluster.batch import Options
from mpi_compress.cluster.states import to_submit
from mpi_compress.cluster.submission import Submission
from mpi_compress.core.progress import count_text
from mpi_compress.preparing.needs import refuse_runs
from mpi_compress.results.status import State


def act(options: Namespace) -> int:
    job, out = load(options), Path(options.out)
    asked = Options(**{field.name: getattr(options, field.name) for field in fields(Options)})
    settings = [part for setting in options.set for part in ("--set", setting)]
    run = [options.job, *["--full"] * options.full, "--out", options.out, *settings]
    todo = to_submit(job, out, options.dry_run, options.fresh)
    if not todo:
        print("nothing to submit: all runs are done or in the queue")
        return 0
    refuse_runs([spec for spec in job.runs if spec.index in todo and todo[spec.index].state is State.REFUSED], job.runs)
    submission = Submission(job, Path(options.job), out, run, todo, asked, options.fresh)
    text = submission.text()  # refuses wrong options
    if options.dry_run:
        print(text, end="")
        return 0
    numbers = submission.submit()
    runs, jobs = count_text(len(todo), "run"), f"job{'s' * (len(numbers) != 1)} {', '.join(numbers)}"
    print(f"submitted {runs} as {jobs}; `mpi-compress {shlex.join(['plan', *run])}` lists their states")
    return 0
