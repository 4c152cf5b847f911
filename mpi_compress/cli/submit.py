"""`mpi-compress submit JOB`"""

import shlex
from argparse import ArgumentParser, Namespace
from dataclasses import fields
from pathlib import Path

from mpi_compress.cli.parsing import add_job, load
from mpi_compress.core.progress import print_line


def add_arguments(parser: ArgumentParser) -> None:
    add_job(parser)
    parser.add_argument("--ntasks", type=int, metavar="N", help="ranks of a run (default: one a worker, and the master)")
    parser.add_argument("--nodes", type=int, metavar="N", help="computers of a run (default: as SLURM finds fit)")
    limit = 'limit of a task: 01:00:00, "2 h", or minutes; what is not done by then is queued again'
    parser.add_argument("--time", metavar="TIME", help=limit)
    parser.add_argument("--partition", metavar="NAME", help="the partition to queue in (default: the cluster's)")
    parser.add_argument("--account", metavar="NAME", help="the account to charge (default: yours)")
    parser.add_argument("--max-running", type=int, metavar="N", help="at most N tasks at a time (default: no limit)")
    parser.add_argument("--launcher", choices=["srun", "mpiexec"], help="what starts the ranks (default: srun, where MPI knows it)")
    parser.add_argument("--mpi", metavar="KIND", help="srun's --mpi, one of `srun --mpi=list` (default: pmi2 for MPICH from PyPI)")
    parser.add_argument("--warn", default="2 min", metavar="TIME", help="save a run this long before its limit (default: 2 min)")
    module = "an environment module to load first"
    parser.add_argument("--module", dest="modules", action="append", default=[], metavar="NAME", help=module)
    parser.add_argument("--venv", metavar="FOLDER", help="the virtual environment to activate first (default: the one in use)")
    further = "a further option of sbatch, such as --sbatch=--mem=8G"
    parser.add_argument("--sbatch", action="append", default=[], metavar="OPTION", help=further)
    parser.add_argument("--dry-run", action="store_true", help="print the script, submit nothing")


def act(options: Namespace) -> int:
    from mpi_compress.cluster.batch import Options
    from mpi_compress.cluster.states import to_submit
    from mpi_compress.cluster.submission import Submission
    from mpi_compress.results.status import State

    job, out = load(options), Path(options.out)
    asked = Options(**{field.name: getattr(options, field.name) for field in fields(Options)})
    settings = [part for setting in options.set for part in ("--set", setting)]
    run = [options.job, *["--full"] * options.full, "--out", options.out, *settings]
    todo = to_submit(job, out, options.dry_run)
    if not todo:
        print("nothing to submit: all runs are done or in the queue")
        return 0
    for spec in job.runs:
        if spec.index in todo and (status := todo[spec.index]).state is State.REFUSED:
            print_line(f"mpi-compress: {spec.where}{status}")
    submission = Submission(job, Path(options.job), out, run, todo, asked)
    text = submission.text()  # refuses wrong options
    if options.dry_run:
        print(text, end="")
        return 0
    numbers = submission.submit()
    runs, jobs = f"{len(todo)} run{'s' * (len(todo) != 1)}", f"job{'s' * (len(numbers) != 1)} {', '.join(numbers)}"
    print(f"submitted {runs} as {jobs}; `mpi-compress {shlex.join(['plan', *run])}` lists their states")
    return 0

