"""`mpi-compress run JOB`. Signals are caught before what takes long is imported."""

import shlex
import sys
from argparse import Namespace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from mpi_compress.core.clock import Stopwatch
from mpi_compress.core.ending import EXIT_FAILED
from mpi_compress.core.errors import UserError
from mpi_compress.core.expressions import time_of
from mpi_compress.core.progress import print_line
from mpi_compress.core.shipped import unshipped
from mpi_compress.core.signals import BEGUN, Interrupts
from mpi_compress.core.terminal import has_bar, say

if TYPE_CHECKING:
    from mpi_compress.job.loading import Job
    from mpi_compress.results.reader import Run

_LONG, _WAITING = 5.0, 0.8  # seconds of a run, and the share of them in its exchange, from which on a line says that ranks wait


def act(options: Namespace) -> int:
    if options.verify is not None:
        return _verify(options)
    with Interrupts(time_of(options.time_limit, "--time-limit") if options.time_limit else None).caught() as interrupts:
        from mpi_compress.kernels import lasting

        with lasting():
            from mpi_compress.engine.request import Request
            from mpi_compress.engine.runner import run_as
            from mpi_compress.exchange.ranks import Ranks, launched
            from mpi_compress.preparing import compiling

        ranks = Ranks() if options.one_process else launched()
        job = ranks.each(lambda: _load(options))
        request = Request(
            options.out, ranks, interrupts, options.fresh, options.quiet, options.force,
            stopwatch=Stopwatch(BEGUN), lines=options.verbose or not has_bar(), details=options.verbose,
        )  # fmt: skip
        with compiling.shown(not request.tells):
            runs = run_as(job, request)
    if ranks.is_root and not options.quiet:
        _print_endings(runs, (*request.kept, *chain(*request.proved.values())))
        for line in _waited(runs) if ranks.size == len(ranks.ranks_here) and not ranks.crowded else ():
            print_line(line)
        if not request.lines:
            print_line(f"results: {' '.join(dict.fromkeys(f'{run.file.parent}/' for run in runs))}")
        _print_next(job, runs, options)
    failed = ranks.on_root(lambda: sum(r.status not in ("complete", "stopped") for r in runs))
    return EXIT_FAILED if failed else 0


def _verify(options: Namespace) -> int:
    from mpi_compress.cli.parsing import load
    from mpi_compress.engine.verifying import verify
    from mpi_compress.exchange.ranks import launched

    if launched().size > 1:
        raise UserError("--verify: starts ranks itself; leave mpiexec out")
    found = verify(load(options), options.verify)
    say(*map(str, found))
    return 0 if all(each.holds for each in found) else 1


def _print_endings(runs: "list[Run]", told: tuple[str, ...]) -> None:
    from mpi_compress.core.tables import shown
    from mpi_compress.evidence.method_status import LESS_NEEDED, endings

    heads, rows, notes = endings(runs)
    for line in (*shown(sys.stderr, heads, rows, LESS_NEEDED), *(note for note in notes if not note.startswith(told))):
        print_line(line)


def _waited(runs: "list[Run]") -> list[str]:
    """Lines of which runs on several ranks went by in waiting, and what may help."""
    from mpi_compress.evidence.notes import said_of

    said, may_help = [], "if there are fewer cores than it seems, as in containers, MPI_COMPRESS_CROWDED=1 may help"
    for run in runs:
        seconds, waiting = (float(run.timing[name][-1]) if run.rows else 0.0 for name in ("seconds", "exchange"))
        mostly = run.attrs["n_ranks"] > 1 and seconds > _LONG and waiting > _WAITING * seconds
        said.append(f"ranks waited for each other for more than {_WAITING:.0%} of the time; {may_help}" if mostly else "")
    return [*said_of(said, [run.label for run in runs]).values()]


def _print_next(job: "Job", runs: "list[Run]", options: Namespace) -> None:
    """Print which commands draw these results, compare them at levels that they reach, and check one's own compressors and
    methods."""
    from mpi_compress.algorithms.contract import Method
    from mpi_compress.messages.compressors import Compressor
    from mpi_compress.report.needed import proposed

    where = ["--out", str(options.out)] if options.out != Path("results") else []
    chosen = [word for key in ("set", "only") for value in getattr(options, key) or [] for word in (f"--{key}", value)]
    same = [*chosen, *["--full"] * options.full, *where]
    if any(run.status == "failed" for run in runs):
        print_line("next: the same command again runs what failed")
    file = unshipped(options.job)
    checked = {part.name for spec in job.runs for part in spec.own if isinstance(part, Compressor | Method)}
    checks = [("check-part", name, "--job", file) for name in sorted(checked)]
    for words in (("plot", file, *same), ("table", file, *same, *proposed(runs, job)), *checks):
        print_line(f"next: {shlex.join(['mpi-compress', *words])}")


def _load(options: Namespace) -> "Job":
    """The job; a UserError if its runs are not those that were submitted."""
    from mpi_compress.cli.parsing import load

    job = load(options, options.submitted)
    if options.submitted is not None:
        from mpi_compress.cluster.submission import check_runs

        check_runs(job, options.submitted)
    return job
