"""`mpi-compress submit JOB`"""

import shlex
from argparse import Namespace
from pathlib import Path

from mpi_compress.cli.parsing import load
from mpi_compress.cluster.batch import Options
from mpi_compress.cluster.submission import Submission, to_submit
from mpi_compress.core.progress import count_text, print_line
from mpi_compress.core.registry import checked
from mpi_compress.core.signals import Interrupts
from mpi_compress.engine import earlier_runs
from mpi_compress.engine.request import Request
from mpi_compress.exchange.ranks import Ranks
from mpi_compress.job.loading import Job
from mpi_compress.planning.estimates import suggestion
from mpi_compress.results.files import result_file
from mpi_compress.results.status import Status

_RANKS = {"pack", "ntasks", "nodes", "launcher"}  # whoever gives one of them has decided what a task is


def act(options: Namespace) -> int:
    job, out, usual = load(options), options.out, vars(Options())
    given = {name: value for name in usual if (value := getattr(options, name)) not in (usual[name], [])}
    Options(**given)  # refuses wrong ones, where nothing is left to submit, too
    settings = [part for setting in options.set for part in ("--set", setting)]
    run = [options.job, *["--full"] * options.full, "--out", str(out), *settings]
    if not options.dry_run:
        _take_what_is_there(job, out, options.fresh)
    todo = to_submit(job, out, options.dry_run, options.fresh)
    if not todo:
        print("nothing to submit: all runs are done or in the queue")
        return 0
    alike: dict[str, tuple[Options, dict[int, Status]]] = {}  # what is asked of SLURM, the runs that ask for it, and their states
    for spec in (spec for spec in job.runs if spec.index in todo):
        asked = checked(Options, {**spec.slurm, **given}, f"{spec.where}slurm")
        alike.setdefault(repr(asked), (asked, {}))[1][spec.index] = todo[spec.index]
    submissions = [Submission(job, Path(options.job), out, run, runs, asked, options.fresh) for asked, runs in alike.values()]
    texts = [submission.text() for submission in submissions]  # refuses wrong options
    undecided = [spec for spec in job.runs if spec.index in todo and not _RANKS & {*spec.slurm, *given}]
    if len(undecided) > 1 and (line := suggestion(job, undecided, out, True)):
        print_line(f"mpi-compress: {line}")
    if options.dry_run:
        renamed = "# `submit --fresh` first renames results that are done to .h5.old; by hand, rename them, or none is rerun\n"
        print(*texts, *[renamed] * options.fresh, sep="\n", end="")
        return 0
    numbers = [number for submission in submissions for number in submission.submit()]
    runs, jobs = count_text(len(todo), "run"), f"job{'s' * (len(numbers) != 1)} {', '.join(numbers)}"
    print(f"submitted {runs} as {jobs}; `mpi-compress {shlex.join(['plan', *run])}` lists their states")
    return 0


def _take_what_is_there(job: Job, out: Path, fresh: bool) -> None:
    """Take the results of the same runs in other jobs, and of other seeds where nothing is drawn: these runs need no task."""
    here = [spec for spec in job.runs if not spec.missing]
    files = [result_file(job.name, spec.label, spec.run_id, out) for spec in here]
    earlier_runs.done(here, files, Request(out, Ranks(), Interrupts(), fresh))
