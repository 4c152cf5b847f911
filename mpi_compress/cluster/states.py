"""The state of each run of a job: done, running, queued, failed and why, or to do."""

from collections.abc import Iterator
from pathlib import Path

from mpi_compress.cluster import slurm
from mpi_compress.cluster.notes import key_of
from mpi_compress.core.errors import UserError
from mpi_compress.job.loading import Job
from mpi_compress.results.files import part_of, result_file
from mpi_compress.results.reader import read
from mpi_compress.results.writer import is_being_written


def states(job: Job, out: Path) -> Iterator[str]:
    """The state of every run: done, diverged, running, queued, stopped, failed, broken off, or to do; where it is, and why."""
    tasks = slurm.tasks(job.name, out)
    for spec in job.runs:
        yield _state(result_file(job.name, spec.label, spec.run_id, out), slurm.task_of(spec, tasks))


def to_submit(job: Job, out: Path, dry_run: bool) -> dict[int, str]:
    """Number → key of the runs that are neither done nor in SLURM's queue.

    If SLURM does not answer, a dry run takes the queue to be empty; otherwise it is a UserError.
    """
    queue = slurm.tasks(job.name, out)
    todo = {}
    for spec in job.runs:
        task = slurm.task_of(spec, queue)
        if result_file(job.name, spec.label, spec.run_id, out).exists():
            continue
        if task and task.state == slurm.SILENT and not dry_run:
            raise UserError(f"what is queued already is not known: {task.reason}; try again when SLURM answers")
        if not task or task.state in ("", slurm.SILENT):
            todo[spec.index] = key_of(spec)
    return todo


def _state(file: Path, task: slurm.Task | None) -> str:
    if file.exists():
        run = read(file)
        why = f": {run.attrs['reason']}" if run.attrs["reason"] else ""
        return f"{'done' if run.status == 'complete' else run.status}{why}"
    status, reason, reached = _begun(part_of(file))
    if is_being_written(part_of(file)):
        return f"running{f', SLURM {task.id}' if task else ''}{reached}"
    if task and task.state:
        return f"{_in_queue(task, reached)}, SLURM {task.id}{reached}"
    if status not in ("", "running"):
        return f"{status}: {reason}{reached}"
    if task and (words := task.last_words()):
        return f"failed: {words}{reached} (all of it: {task.log})"
    if status:
        return f"broken off{reached}"
    return f"left SLURM's queue without a word, {task.id}" if task else "to do"


def _in_queue(task: slurm.Task, reached: str) -> str:
    words = {"PENDING": f"queued ({task.reason})", slurm.SILENT: f"not known ({task.reason})"}
    return words.get(task.state) or ("starting" if task.state == "RUNNING" and not reached else task.state.lower())


def _begun(part: Path) -> tuple[str, str, str]:
    """Status, reason and last row of an unfinished result, each "" where there is none."""
    try:
        run = read(part)
    except UserError:
        return ("running" if part.exists() else ""), "", ""
    reached = f" (round {run.trace['round'][-1]}, loss {run.trace['loss'][-1]:.6g})" if "round" in run.trace else ""
    return run.status, str(run.attrs["reason"]), reached
