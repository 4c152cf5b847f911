"""The status of each run of a job: what its files tell, joined with what SLURM knows of its task."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from mpi_compress.cluster import slurm
from mpi_compress.core.errors import UserError
from mpi_compress.core.signals import EXIT_STOPPED
from mpi_compress.job.loading import Job
from mpi_compress.preparing.needs import refusal
from mpi_compress.preparing.shapes import Shapes
from mpi_compress.results.files import part_of, result_file
from mpi_compress.results.reader import result_of_run
from mpi_compress.results.status import State, Status, status_of

_NODE = "a node failed: "
_WHAT = {"TIMEOUT": "time limit: ", "NODE_FAIL": _NODE, "BOOT_FAIL": _NODE, "OUT_OF_MEMORY": "out of memory: "}


def statuses(job: Job, out: Path, shapes: Shapes | None = None) -> Iterator[Status]:
    """The status of every run of a job; `shapes` has the sizes of data that are known already."""
    tasks, shapes = slurm.tasks(job.name, out), shapes or Shapes()
    for spec in job.runs:
        if spec.missing:
            yield Status(State.LACKING, spec.missing)
            continue
        run_id = spec.run_id  # a hash, which takes a while
        status = _status(result_file(job.name, spec.label, run_id, out), slurm.task_of(run_id, spec.label, tasks))
        if status.state is State.TO_DO and (why := refusal(spec, shapes.of(spec))):
            status = Status(State.REFUSED, why)
        yield status


def to_submit(job: Job, out: Path, dry_run: bool, fresh: bool = False) -> dict[int, Status]:
    """The status of each run, by its number, that is neither done, unless `fresh`, nor under way nor in SLURM's queue. A run whose
    result cannot be read is not done. If SLURM does not answer, a dry run takes the queue to be empty; else: UserError."""
    found = {spec.index: status for spec, status in zip(job.runs, statuses(job, out), strict=True)}
    silent = [status for status in found.values() if status.state is State.UNKNOWN]
    if silent and not dry_run:
        raise UserError(f"what is queued already is not known: {silent[0].reason}; try again when SLURM answers")
    left_alone = [State.RUNNING, State.QUEUED, *([] if fresh else [State.COMPLETE, State.DIVERGED])]
    return {index: status for index, status in found.items() if status.state not in left_alone}


def _status(file: Path, task: slurm.Task | None) -> Status:
    own, part = status_of(file, result_of_run), part_of(file)
    if task is None or file.exists():
        return own
    if own.state is State.RUNNING:
        return replace(own, task=task.id)
    if task.state:
        return _in_queue(task, own)
    return own if _is_older(task.log, part) else _ended(task, own)


def _in_queue(task: slurm.Task, own: Status) -> Status:
    at = replace(own, reason="", task=task.id)
    if task.state in ("PENDING", slurm.SILENT):
        return replace(at, state=State.QUEUED if task.state == "PENDING" else State.UNKNOWN, reason=task.reason)
    if task.state == "RUNNING":
        return replace(at, state=State.RUNNING, said="" if own.last else "starting")
    return replace(at, state=State.QUEUED, said=task.state.lower())


def _ended(task: slurm.Task, own: Status) -> Status:
    """The status of a run whose task has left the queue; `own` is what its files tell, which an earlier task may have written."""
    last, words = task.last_try(), task.last_words()
    if last.status == EXIT_STOPPED:
        return replace(own, state=State.STOPPED, reason=own.reason if own.state is State.STOPPED else words)
    is_settled = own.state not in (State.TO_DO, State.BROKEN_OFF)
    if last.status == 0 or (not last.begun and is_settled):  # written by a script of an earlier version
        return own
    ended = "TIMEOUT" if any("DUE TO TIME LIMIT" in line for line in last.lines) else task.ended
    what = _WHAT.get(ended, "")
    if what or words:
        return replace(own, state=State.FAILED, reason=f"{what}{words or 'without a word'}", log=task.log)
    lost = f"left SLURM's queue without a word, {task.id}"
    return Status(State.BROKEN_OFF, said=lost) if own.state is State.TO_DO else own


def _is_older(file: Path, other: Path) -> bool:
    """True if a file was written before another, or is not there and the other is; a second's difference does not count."""
    written = [one.stat().st_mtime if one.exists() else 0.0 for one in (file, other)]
    return written[0] < written[1] - 1.0
