"""`mpi-compress plan JOB`"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mpi_compress.cli.parsing import add_job, load, positive

if TYPE_CHECKING:
    from mpi_compress.job.loading import Job


def add_arguments(parser: ArgumentParser) -> None:
    add_job(parser)
    parser.add_argument("--ranks", type=positive, metavar="R", help="for the memory of each of R ranks (default: workers + 1)")
    parser.add_argument("--force", action="store_true", help="do not refuse what needs more memory than there is")


def act(options: Namespace) -> int:
    from mpi_compress.engine.memory_needs import refuse_what_fits_nowhere

    job = load(options)
    for line in plan_lines(job, Path(options.out), options.ranks):
        print(line)
    if not options.force:
        refuse_what_fits_nowhere(job, options.ranks)
    return 0


def plan_lines(job: "Job", out: Path, ranks: int | None = None) -> Iterator[str]:
    """One line a run: index, label, run id, the memory that it needs, and what became of it."""
    from mpi_compress.cluster.states import states
    from mpi_compress.engine import memory_needs

    width = max(len(s.label) for s in job.runs)
    for spec, state in zip(job.runs, states(job, out), strict=True):
        yield f"{spec.index:3d}  {spec.label:{width}s}  {spec.run_id}  {memory_needs.text(spec, ranks)}  {state}"
