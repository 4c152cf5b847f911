"""From a job to its results.

    Job.runs: RunSpec            a run's tables, each read and built to its part
      │  earlier_runs.done       which of them have a result, which is not run again
      │  tuning.tune             those with a [tune] get the best of its values, by trials that are runs of a job
      │  preparing.runs.prepare  every run, before the first is run: its data, its constants, its memory, what it needs
    Prepared                     a problem, an algorithm bound to its setting, x0
      │  Execution.execute        one by one: the objectives of the workers hosted here, the result file, the checkpoint
      │  rounds.run              or asynchronous.run; between two rounds the observer logs and judges, the keeper saves
    <out>/<job>/<label>-<run id>.h5
      │  results.reader.read
    Runs                         what `mc.run` returns, in the job's order
"""

import json
import signal
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from inspect import signature
from itertools import chain
from math import isnan
from pathlib import Path
from typing import Any, Never

from mpi_compress.core.errors import UserError, placed
from mpi_compress.core.progress import count_text, print_line, turn_text
from mpi_compress.core.removed import refuse_key
from mpi_compress.core.signals import Interrupted, Interrupts, Stopped
from mpi_compress.engine import earlier_runs
from mpi_compress.engine.executing import Execution
from mpi_compress.engine.metrics import try_metrics
from mpi_compress.engine.request import Request
from mpi_compress.engine.tuning import tune
from mpi_compress.evidence.outcomes import changed_inputs
from mpi_compress.exchange.host import keep_freed_memory
from mpi_compress.exchange.ranks import Ranks, ranks_of
from mpi_compress.job.loading import Job, load_job
from mpi_compress.job.runs import RunSpec
from mpi_compress.job.tables import Tables
from mpi_compress.preparing import compiling
from mpi_compress.preparing.alone import with_suboptimality
from mpi_compress.preparing.needs import if_others_go, refuse_runs
from mpi_compress.preparing.problems import Problem
from mpi_compress.preparing.runs import Prepared, foreseen_refusal, prepare
from mpi_compress.preparing.shapes import said_of
from mpi_compress.problem.rows import Rows
from mpi_compress.results.files import checkpoint_of, new_file, part_of, refuse_no_file, result_file
from mpi_compress.results.locks import is_being_written
from mpi_compress.results.reader import Run, Runs, read, result_of_run

_CALL_AGAIN = "call mc.run with the same job again to go on"


def run(
    job: Job | Mapping[str, Any] | str | Path, comm: Any = None, out: str | Path = "results", fresh: bool = False,
    quiet: bool = True, ranks: Ranks | None = None, force: bool = False, interrupts: Interrupts | None = None,
    on_row: Callable[[dict[str, Any]], Any] | None = None, **removed: Never,
) -> list[Run]:  # fmt: skip
    """Run a job: in this process, or on the ranks of an mpi4py communicator. A run whose result exists is not run again, unless
    `fresh`.

    Args:
        job: a job, or what `load_job` takes; `comm`: the communicator of mpi4py whose ranks host the workers.
        out: results go to `<out>/<job>/<label>-<run id>.h5`.
        quiet: print no progress and no summary on stderr, only what goes wrong.
        ranks: in place of `comm`, ranks that are open already, and stay so.
        force: try also runs that need more memory than is free.
        on_row: takes every record, a dict of `label`, the columns of the trace, and `seconds`. Rank 0 calls it in logged rounds,
            off the clock; not for rows of before. What it raises ends the call.

    Returns: the results in the job's order, at rank 0; nothing elsewhere.

    Raises:
        Stopped: a run was asked to end, by Ctrl-C or by `interrupts`; it is saved, and the same call goes on.
    """
    for name in removed:
        raise refuse_key("mc.run", name, signature(run).parameters.keys() - {"removed"})
    if on_row is not None and not callable(on_row):
        raise UserError(f"on_row: {on_row!r:.60} was given; it should be a function of a record")
    own = ranks or ranks_of(comm)
    job = job if isinstance(job, Job) else load_job(job)
    request = Request(Path(out), own, interrupts or Interrupts(), fresh, quiet, force, on_row, again=_CALL_AGAIN)
    with compiling.shown(not request.tells), nullcontext() if interrupts else _ctrl_c_caught(request.interrupts):
        runs = run_as(job, request)
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
        raise Stopped(f"stopped by {interrupted} {interrupted.when}; {_CALL_AGAIN}") from None


def run_as(job: Job, request: Request) -> Runs:
    """Run a job as a command or a call asks for it: the results at rank 0."""
    ranks = request.ranks
    keep_freed_memory()
    request.stopwatch.end("start")
    files = ranks.on_root(partial(_files_of, job, request))
    done = ranks.on_root(partial(earlier_runs.done, job.runs, files, request))
    specs = {i: spec for i, spec in enumerate(job.runs) if not done[i]}
    ranks.on_root(partial(refuse_runs, [*specs.values()], job.runs))  # before anything is parsed, solved or compiled
    _say_data(job, request)
    wins = tune(job, specs, request, run_as) if any(spec.tune for spec in specs.values()) else {}
    prepared = _prepare_all(job, specs, request)
    request.stopwatch.end("prepare")
    _say_before(done, request)
    rows: dict[Any, dict[int, Rows]] = {}
    results: dict[int, Run] = {}
    try:
        for i in _in_order(files, prepared, request):
            file = files[i]
            if i in prepared and not ranks.on_root(partial(_is_copied, specs[i], file, wins.get(i), results, request)):
                turn = turn_text(len(results) + 1, len(files), *["trial {} of {} in this stage"] * request.shared)
                file = Execution(prepared[i], file, request, rows, turn).execute(wins.get(i))
            if ranks.is_root:
                results[i] = _result(job.runs[i], file, i not in prepared, request)
    except Interrupted as interrupted:
        interrupted.when = f"between runs, {len(results)} of {len(files)} done"
        raise
    if ranks.is_root and not request.shared:
        for where, would_do in chain(request.kept.items(), *(proved.items() for proved in request.proved.values())):
            print_line(f"mpi-compress: {where}. {would_do}")
    return Runs(results[i] for i in sorted(results))


def _is_copied(spec: RunSpec, file: Path, tuned: Tables | None, ended: Mapping[int, Run], request: Request) -> bool:
    """True if an equal run has just been executed, or before unless `fresh`, and this one's result is a copy."""
    among = [run.file for run in ended.values()] if request.fresh else earlier_runs.siblings(file)
    return earlier_runs.is_taken(spec, file, tuned, earlier_runs.equal_run(spec, tuned, among), not request.tells_ends)


def _result(spec: RunSpec, file: Path, was_done: bool, request: Request) -> Run:
    """The result of a run, once it has ended; at rank 0."""
    found = result_of_run(file) if was_done else read(file)
    found.attrs["overridden"] = json.dumps(spec.overridden)  # of the job as it is now
    if "suboptimality" in spec.asked:
        found = with_suboptimality([found], [spec], request.quiet)[0]
    if found.status == "diverged" and not request.shared and (request.quiet or was_done):
        print_line(f"{found.label}: diverged ({found.attrs['reason']}), {file}")
    elif was_done and request.tells_ends:
        print_line(f"{found.label}: done already, {file}")
    return found


def _in_order(files: Sequence[Path], prepared: Collection[int], request: Request) -> Iterator[int]:
    """The numbers of the runs in the order in which they are run: trials that another process runs at this moment come later."""
    left = [*range(len(files))]

    def place() -> int:
        free = (at for at, i in enumerate(left) if i not in prepared or not is_being_written(part_of(files[i])))
        return next(free, 0)

    while left:
        yield left.pop(request.ranks.on_root(place) if request.shared else 0)


def _say_data(job: Job, request: Request) -> None:
    """Print a line for each set of a job."""
    if request.quiet or request.shared:
        return
    with suppress(UserError):  # which `_prepare_all` will meet
        for line in request.ranks.on_root(lambda: [*said_of(job.runs), *changed_inputs(job, request.out)]):
            if request.tells:
                print_line(line)


def _say_before(done: Sequence[bool], request: Request) -> None:
    """Print, before the first run, that ranks share cores, and how many runs are done."""
    ranks, count = request.ranks, sum(done)
    if not request.tells or request.shared:
        return
    if count < len(done) and ranks.crowded and len(ranks.ranks_here) > 1:
        here = len(ranks.ranks_here)
        print_line(f"{here} ranks share the cores of this host; fewer ranks give the same numbers, and mostly sooner")
    if count and not request.tells_ends:
        print_line(f"{count} of {count_text(len(done), 'run')} done already; --fresh runs again")


def _prepare_all(job: Job, specs: Mapping[int, RunSpec], request: Request) -> dict[int, Prepared]:
    """The runs as they are ready. The error of one that is not says how to run the others of its job."""
    problems: dict[str, Problem] = {}
    prepared, ranks = {}, request.ranks
    for i, spec in specs.items():
        try:
            prepared[i] = prepare(spec, ranks, problems, request.quiet, request.force)
        except UserError as error:
            go = if_others_go(spec, job.runs, lambda other: foreseen_refusal(other, problems) != "")
            raise type(error)(f"{error}{go}") from None
    for p in prepared.values():
        if request.shared and "suboptimality" in p.spec.asked and isnan(p.problem.f_star):
            would_do = "to = { squared_grad_norm = 1e-4 } would do"
            raise UserError(f"{p.spec.where}tune.to: f* is not known, and no trial has a suboptimality; {would_do}")
        if p.spec.metrics:
            ranks.on_root(partial(try_metrics, p))
    return prepared


def _files_of(job: Job, request: Request) -> list[Path]:
    """The results' files."""
    place = new_file if request.fresh else result_file

    def of(spec: RunSpec) -> Path:
        with placed(spec.where):
            file = place(job.name, spec.label, spec.run_id, request.out)
            for each in (file, part_of(file), checkpoint_of(file)):
                refuse_no_file(each)
            return file

    return [of(spec) for spec in job.runs]
