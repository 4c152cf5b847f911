"""The state of each run of a job: done, running, queued, failed and why, or to do."""

import time
from collections.abc import Iterator
from pathlib import Path

from mpi_compress.cluster import slurm
from mpi_compress.cluster.notes import key_of
from mpi_compress.core.errors import UserError
from mpi_compress.core.signals import EXIT_STOPPED
from mpi_compress.job.loading import Job
from mpi_compress.preparing.foreseen import refusal
from mpi_compress.preparing.memory_needs import Shapes
from mpi_compress.results.files import part_of, result_file
from mpi_compress.results.reader import read
from mpi_compress.results.writer import is_being_written

TO_DO = "to do"
_LONG = 60.0  # seconds without a row that a plan tells


def states(job: Job, out: Path, shapes: Shapes | None = None) -> Iterator[str]:
    """The state of every run: done, diverged, running, queued, stopped, failed, broken off, to do, not run; and why.

    Args:
        shapes: the sizes of data that are known already.
    """
    tasks, shapes = slurm.tasks(job.name, out), shapes or Shapes()
    for spec in job.runs:
        if spec.missing:
            yield f"not run: {spec.missing}"
            continue
        run_id = spec.run_id  # a hash, which takes a while
        state = _state(result_file(job.name, spec.label, run_id, out), slurm.task_of(run_id, spec.label, tasks))
        if state == TO_DO and (shape := shapes.of(spec)) is not None and (why := refusal(spec, shape)):
            state = f"would be refused: {why}"
        yield state


def to_submit(job: Job, out: Path, dry_run: bool) -> dict[int, str]:
    """Number → key of the runs that are neither done nor in SLURM's queue.

    If SLURM does not answer, a dry run takes the queue to be empty; otherwise it is a UserError.
    """
    queue = slurm.tasks(job.name, out)
    todo = {}
    for spec in job.runs:
        run_id = spec.run_id
        task = slurm.task_of(run_id, spec.label, queue)
        if result_file(job.name, spec.label, run_id, out).exists():
            continue
        if task and task.state == slurm.SILENT and not dry_run:
            raise UserError(f"what is queued already is not known: {task.reason}; try again when SLURM answers")
        if not task or task.state in ("", slurm.SILENT):
            todo[spec.index] = key_of(run_id, spec.label)
    return todo


def _state(file: Path, task: slurm.Task | None) -> str:
    if file.exists():
        try:
            run = read(file)
        except UserError as error:
            return f"cannot be read: {error}"
        why = f": {run.attrs['reason']}" if run.attrs["reason"] else ""
        return f"{'done' if run.status == 'complete' else run.status}{why}"
    part = part_of(file)
    status, reason, reached = _begun(part)
    if is_being_written(part):
        return f"running{f', SLURM {task.id}' if task else ''}{reached}{_silence(part)}"
    if task and task.state:
        return f"{_in_queue(task, reached)}, SLURM {task.id}{reached}{_silence(part) if task.state == 'RUNNING' else ''}"
    if task and not _is_older(task.log, part) and (ended := _ended(task, status, reason, reached)):
        return ended
    if status not in ("", "running"):
        return f"{status}: {reason}{reached}"
    return f"broken off{reached}" if status else TO_DO


def _ended(task: slurm.Task, status: str, reason: str, reached: str) -> str:
    """How a task ended that has left the queue; "" if the run's file alone says it.

    Args:
        status, reason, reached: of the unfinished result, which an earlier task may have written.
    """
    last, words = task.last_try(), task.last_words()
    if last.status == EXIT_STOPPED:
        return f"stopped: {reason if status == 'stopped' else words}{reached}"
    if last.status == 0 or (not last.begun and status not in ("", "running")):  # written by a script of an earlier version
        return ""
    what = (
        "time limit: "
        if task.ended == "TIMEOUT" or any("DUE TO TIME LIMIT" in line for line in last.lines)
        else _WHAT.get(task.ended, "")
    )
    if what or words:
        return f"failed: {what}{words or 'without a word'}{reached} (all of it: {task.log})"
    return "" if status else f"left SLURM's queue without a word, {task.id}"


_WHAT = {"NODE_FAIL": "a node failed: ", "BOOT_FAIL": "a node failed: ", "OUT_OF_MEMORY": "out of memory: "}


def _is_older(file: Path, other: Path) -> bool:
    """True if a file was written before another, or is not there and the other is; a second's difference does not count."""
    written = [one.stat().st_mtime if one.exists() else 0.0 for one in (file, other)]
    return written[0] < written[1] - 1.0


def _silence(part: Path) -> str:
    """Since when a run that is being played has written no row, if that is long."""
    try:
        waited = time.time() - part.stat().st_mtime
    except OSError:
        return ""
    return f", no row for {waited / 60:.0f} min" if waited >= _LONG else ""


def _in_queue(task: slurm.Task, reached: str) -> str:
    words = {"PENDING": f"queued ({task.reason})", slurm.SILENT: f"not known ({task.reason})"}
    return words.get(task.state) or ("starting" if task.state == "RUNNING" and not reached else task.state.lower())


def _begun(part: Path) -> tuple[str, str, str]:
    """Status, reason and last row of an unfinished result, each "" where there is none."""
    if not part.exists():  # `read` would wait for a writer
        return "", "", ""
    try:
        run = read(part)
    except UserError:
        return ("running" if part.exists() else ""), "", ""
    reached = f" (round {run.trace['round'][-1]}, loss {run.trace['loss'][-1]:.6g})" if "round" in run.trace else ""
    return run.status, str(run.attrs["reason"]), reached
