"""From a job to its results.

    Job.runs: RunSpec            a run's tables, each read and built to its part
      │  earlier_runs.done       which of them have a result, which is not run again
      │  tuning.tune             those with a [tune] get the best of its values, by trials that are runs of a job
      │  preparing.runs.prepare  every run, before the first is run: its data, its constants, its memory, what it needs
    Prepared                     a problem, an algorithm bound to its setting, x0
      │  executing.execute       one by one: the objectives of the workers hosted here, the result file, the checkpoint
      │  rounds.run              or asynchronous.run; between two rounds the observer logs and judges, the keeper saves
    <out>/<job>/<label>-<run id>.h5
      │  results.reader.read
    Runs                         what `mc.run` returns, in the job's order
"""

import itertools
import signal
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

from mpi_compress.core.errors import UserError, placed, system_text
from mpi_compress.core.plugins import prefer
from mpi_compress.core.progress import Turn, count_text, ignore, print_line
from mpi_compress.core.signals import Interrupted, Interrupts, Stopped
from mpi_compress.engine import earlier_runs
from mpi_compress.engine.executing import How, execute
from mpi_compress.engine.hosting import try_metrics
from mpi_compress.engine.tuning import tune
from mpi_compress.engine.watching import Watch
from mpi_compress.exchange.ranks import Ranks, ranks_of
from mpi_compress.job.loading import Job, load_job
from mpi_compress.job.runs import RunSpec
from mpi_compress.messages.kinds import Vector
from mpi_compress.preparing import compiling
from mpi_compress.preparing.alone import with_suboptimality
from mpi_compress.preparing.needs import NOTHING_RUN, refuse_runs
from mpi_compress.preparing.problems import Problem
from mpi_compress.preparing.runs import Prepared, prepare
from mpi_compress.preparing.shapes import said_of, size_of
from mpi_compress.preparing.wanted import key_of
from mpi_compress.problem.datasets.store import open_data
from mpi_compress.problem.rows import Rows
from mpi_compress.results.files import new_file, part_of, result_file
from mpi_compress.results.locks import is_being_written
from mpi_compress.results.reader import Run, Runs, read, result_of_run

_CALL_AGAIN = "call mc.run with the same job again to go on"


def run(
    job: Job | Mapping[str, Any] | str | Path, comm: Any = None, out: str | Path = "results", fresh: bool = False,
    quiet: bool = True, ranks: Ranks | None = None, force: bool = False, interrupts: Interrupts | None = None,
    on_row: Callable[[dict[str, Any]], Any] | None = None, metrics: Mapping[str, Callable[[Vector], float]] | None = None,
    until: Callable[[dict[str, Any]], Any] | None = None,
) -> list[Run]:  # fmt: skip
    """Run a job: in this process, or on the ranks of an mpi4py communicator.

    A run whose result exists is not run again, unless `fresh`, or its result lacks one of `metrics`, or another `until` ended it.
    Rank 0 calls the three functions in logged rounds, off the clock; not for rows of before. What they raise ends the call.

    Args:
        job: a job, or what `load_job` takes; `comm`: the communicator of mpi4py whose ranks host the workers.
        out: results go to `<out>/<job>/<label>-<run id>.h5`.
        quiet: print no progress and no summary on stderr, only what goes wrong.
        ranks: in place of `comm`, ranks that are open already, and stay so.
        force: try also runs that need more memory than is free.
        on_row: takes every record, a dict of `label`, the columns of the trace, and `seconds`.
        metrics: functions of x (d,), by the names of the columns that their numbers become; NaN where x is not finite.
        until: takes every record; if it returns true, the run is complete.

    Returns: the results in the job's order, at rank 0; nothing elsewhere.

    Raises:
        Stopped: a run was asked to end, by Ctrl-C or by `interrupts`; it is saved, and the same call goes on.
    """
    watch, own = Watch(on_row, metrics or {}, until), ranks or ranks_of(comm)
    job = job if isinstance(job, Job) else load_job(job)
    how = How(own, fresh, quiet, force, interrupts or Interrupts(), watch, again=_CALL_AGAIN)
    with compiling.shown(not how.tells), nullcontext() if interrupts else _ctrl_c_caught(how.interrupts):
        runs = run_as(job, Path(out), how)
    if ranks is None:
        own.close()
    return runs


@contextmanager
def _ctrl_c_caught(interrupts: Interrupts) -> Iterator[None]:
    """Take Ctrl-C as a request to end, unless the caller handles it, or this is no main thread."""
    try:
        with interrupts.caught((signal.SIGINT,) if signal.getsignal(signal.SIGINT) is signal.default_int_handler else ()):
            yield
    except Interrupted as interrupted:
        raise Stopped(f"stopped by {interrupted} while it was being prepared; {_CALL_AGAIN}") from None


def run_as(job: Job, out: Path, how: How, refuse: Callable[[Prepared], None] = ignore) -> Runs:
    """Run a job as a command or a call asks for it; `refuse` raises UserError for a prepared run that is not to start."""
    ranks, quiet = how.ranks, how.quiet
    if job.runs:
        plugins = (name for spec in job.runs for name in spec.written.get("plugins", ()))
        prefer(dict.fromkeys(plugins), job.runs[0].folder)  # another job may have been read since
    how.laps.end("start")
    files = ranks.on_root(partial(_files_of, job, out, how.fresh))
    done = ranks.on_root(lambda: [False for _ in files] if how.fresh else earlier_runs.done(files, job.runs, out, how.watch, quiet))
    specs = {i: spec for i, spec in enumerate(job.runs) if not done[i]}
    ranks.on_root(partial(refuse_runs, [*specs.values()], job.runs))  # before anything is parsed, solved or compiled
    _say_data(job, [*specs.values()], how)
    wins = tune(job, specs, out, how, run_as) if any(spec.tune for spec in specs.values()) else {}
    prepared = _prepare_all(job, specs, how, refuse)
    how.laps.end("prepare")
    for folder in dict.fromkeys(files[i].parent for i in prepared):
        ranks.on_root(partial(_writable, folder))
    if prepared and ranks.crowded and len(ranks.ranks_here) > 1 and how.tells and not how.shared:
        here = len(ranks.ranks_here)
        print_line(f"{here} ranks share the cores of this host; fewer ranks give the same numbers, and mostly sooner")
    rows: dict[Any, dict[int, Rows]] = {}
    results: dict[int, Run] = {}
    to_come = len(prepared)
    if how.tells and not (how.tells_ends or how.shared) and any(done):
        print_line(f"{sum(done)} of {count_text(len(done), 'run')} done already; --fresh runs again")
    for i in _in_order(files, prepared, how):
        file = files[i]
        if i in prepared:
            to_come -= 1
            turn = Turn(next(how.trials), None) if how.shared else Turn(i + 1, len(files), to_come)
            file = execute(prepared[i], file, how, rows, wins.get(i), turn)
        if ranks.is_root:
            found = read(file) if i in prepared else result_of_run(file)
            found = with_suboptimality([found], [job.runs[i]], quiet)[0] if "suboptimality" in job.runs[i].asked else found
            results[i] = found
            if found.status == "diverged" and not how.shared and (quiet or i not in prepared):
                print_line(f"{found.label}: diverged ({found.attrs['reason']}), {file}")
            elif i not in prepared and how.tells_ends:
                print_line(f"{found.label}: done already, {file}")
    return Runs(results[i] for i in sorted(results))


def _in_order(files: Sequence[Path], prepared: Collection[int], how: How) -> Iterator[int]:
    """The numbers of the runs in the order in which they are run: trials that another process runs at this moment come later."""
    left = [*range(len(files))]

    def place() -> int:
        free = (at for at, i in enumerate(left) if i not in prepared or not is_being_written(part_of(files[i])))
        return next(free, 0)

    while left:
        yield left.pop(how.ranks.on_root(place) if how.shared else 0)


def _say_data(job: Job, specs: Sequence[RunSpec], how: How) -> None:
    """Print a line for each set of a job; data of an unknown size are parsed first."""
    if how.quiet or how.shared:
        return
    with suppress(UserError):  # which `_prepare_all` will meet
        unknown = how.ranks.on_root(lambda: [size_of(spec) is None for spec in specs])
        for spec in itertools.compress(specs, unknown):
            open_data(spec.data, spec.folder, spec.split, spec.labels, how.ranks, quiet=False)
        for line in how.ranks.on_root(lambda: said_of(job.runs)):
            if how.tells:
                print_line(line)


def _prepare_all(job: Job, specs: Mapping[int, RunSpec], how: How, refuse: Callable[[Prepared], None]) -> dict[int, Prepared]:
    """The runs as they are ready. The error of one that is not says how to run the others of its job."""
    problems: dict[str, Problem] = {}
    prepared = {}
    for i, spec in specs.items():
        try:
            prepared[i] = prepare(spec, how.ranks, problems, how.quiet, how.force)
        except UserError as error:
            same = key_of(spec) not in problems  # then runs on this problem fail, too
            others = any(o.label != spec.label and not (same and key_of(o) == key_of(spec)) for o in job.runs)
            raise type(error)(f"{error}{NOTHING_RUN * others}") from None
    for p in prepared.values():
        how.watch.refuse_columns_of(p.spec, p.algorithm)
        how.ranks.on_root(partial(refuse, p))
        if p.spec.metrics:
            how.ranks.on_root(partial(try_metrics, p))
    return prepared


def _files_of(job: Job, out: Path, fresh: bool) -> list[Path]:
    """The results' files, no two of them the same."""
    place = new_file if fresh else result_file
    files: list[Path] = []
    for spec in job.runs:
        with placed(spec.where):
            file = place(job.name, spec.label, spec.run_id, out)
            if file in files:
                raise UserError("is the same run as another one: label and all settings are equal")
        files.append(file)
    return files


def _writable(folder: Path) -> None:
    """Refuse a results folder before the first round, not after the last."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserError(f"{folder}: results cannot be written there: {system_text(error)}") from None
