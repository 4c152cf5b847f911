"""The status of each run of a job, its files' joined with what SLURM knows of its task; and a submission to SLURM."""

import math
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

from mpi_compress.cluster import notes, slurm
from mpi_compress.cluster.batch import Array, Options, arrays, comment, of_array, script
from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import print_line
from mpi_compress.core.signals import EXIT_STOPPED
from mpi_compress.engine.earlier_runs import lacks
from mpi_compress.job.loading import Job, freeze
from mpi_compress.job.runs import RunSpec
from mpi_compress.preparing.memory import most
from mpi_compress.preparing.needs import if_others_go, refusal, refuse_runs
from mpi_compress.preparing.problems import Problem
from mpi_compress.preparing.runs import foreseen_refusal
from mpi_compress.results.files import part_of, result_file, set_aside
from mpi_compress.results.reader import Run, result_of_run
from mpi_compress.results.status import State, Status, status_of

_ASK_SECONDS = 10.0  # between two questions to SLURM
_NODE = "a node failed: "
_WHAT = {"TIMEOUT": "time limit: ", "NODE_FAIL": _NODE, "BOOT_FAIL": _NODE, "OUT_OF_MEMORY": "out of memory: "}


class Statuses:
    """The statuses of a job's runs; SLURM is asked again once some seconds have passed.

    Args:
        prepares: also refuse what is refused once data are parsed, as far as that takes a moment.
    """

    def __init__(self, job: Job, out: Path, prepares: bool = True):
        self._job, self._out = job, out
        here = [spec for spec in job.runs if not spec.missing]
        self.files = {spec.index: result_file(job.name, spec.label, spec.run_id, out) for spec in here}  # by number of the run
        self._specs = {self.files[spec.index]: spec for spec in here}
        self._asked, self._tasks = -math.inf, dict[str, slurm.Task]()
        self._prepares, self._problems = prepares, dict[str, Problem]()
        self._refusal = cache(self._refused)
        self.unchecked: dict[str, None] = {}  # sets that are not parsed yet, or take long

    def all(self) -> list[Status]:
        """The status of every run."""
        return [Status(State.LACKING, s.missing) if s.missing else self.of(self.files[s.index]) for s in self._job.runs]

    def of(self, file: Path, read: Callable[[Path], Run] = result_of_run) -> Status:
        """The status of the run with this result, or of a trial."""
        if (spec := self._specs.get(file)) is None:
            return status_of(file, read)
        if time.monotonic() > self._asked + _ASK_SECONDS:
            self._asked, self._tasks = time.monotonic(), slurm.tasks(self._job.name, self._out)
        status = _status(file, self._tasks.get(notes.key_of(spec)), read)
        if status.state in (State.COMPLETE, State.DIVERGED) and (why := lacks(file, spec)):
            status = Status(State.TO_DO, why)
        why = self._refusal(file) if status.state is State.TO_DO else ""
        return Status(State.REFUSED, why) if why else status

    def _refused(self, file: Path) -> str:
        """Why a run would be refused, "" for nothing that is known."""
        spec = self._specs[file]
        if (why := refusal(spec)) or not self._prepares:
            return why
        if (found := foreseen_refusal(spec, self._problems)) is None:
            self.unchecked[spec.data.title] = None
        return found or ""

    def refuse(self, specs: Sequence[RunSpec]) -> None:
        """The UserError with which `run` would end, if it would refuse one of these runs."""
        refuse_runs(specs, self._job.runs)
        for spec in specs:
            if not spec.missing and (why := self._refusal(self.files[spec.index])):
                go = if_others_go(spec, self._job.runs, lambda other: foreseen_refusal(other, self._problems) != "")
                raise UserError(f"{spec.where}{why}{go}")


def to_submit(job: Job, out: Path, dry_run: bool, fresh: bool = False) -> dict[int, Status]:
    """The status of each run, by its number, that is neither done, unless `fresh`, nor under way nor in SLURM's queue. A run whose
    result cannot be read is not done. If SLURM does not answer, a dry run takes the queue to be empty; else: UserError, as for a
    run that `run` would refuse."""
    statuses = Statuses(job, out)
    found = {spec.index: status for spec, status in zip(job.runs, statuses.all(), strict=True)}
    silent = [status for status in found.values() if status.state is State.UNKNOWN]
    if silent and not dry_run:
        raise UserError(f"what is queued already is not known: {silent[0].reason}; try again when SLURM answers")
    left_alone = [State.RUNNING, State.QUEUED, *([] if fresh else [State.COMPLETE, State.DIVERGED])]
    todo = {index: status for index, status in found.items() if status.state not in left_alone}
    statuses.refuse([s for s in job.runs if s.index in todo and todo[s.index].state in (State.REFUSED, State.LACKING)])
    return todo


def _status(file: Path, task: slurm.Task | None, read: Callable[[Path], Run]) -> Status:
    own, part = status_of(file, read), part_of(file)
    if task is None or file.exists():
        return own
    if own.state is State.RUNNING:
        return replace(own, task=task.id)
    if task.state:
        return _in_queue(task, own)
    return own if _is_older(task.log, part) else _ended(task, own)


def _in_queue(task: slurm.Task, own: Status) -> Status:
    state, reason, said = {
        "PENDING": (State.QUEUED, task.reason, ""),
        slurm.SILENT: (State.UNKNOWN, task.reason, ""),
        "RUNNING": (State.RUNNING, "", "" if own.last else "starting"),
    }.get(task.state, (State.QUEUED, "", task.state.lower()))
    return replace(own, state=state, reason=reason, said=said, task=task.id)


def _ended(task: slurm.Task, own: Status) -> Status:
    """The status of a run whose task has left the queue; `own` is what its files tell, which an earlier task may have written."""
    last = task.last_try()
    words = last.last_words
    if not last.begun and task.ended.startswith("CANCELLED"):
        return replace(own, said=f"cancelled in the queue, {task.id}")
    if last.status == EXIT_STOPPED:
        return replace(own, state=State.STOPPED, reason=own.reason if own.state is State.STOPPED else words)
    is_over = own.state not in (State.TO_DO, State.BROKEN_OFF)
    if last.status == 0 or (not last.begun and is_over):
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


@dataclass(frozen=True)
class Submission:
    """Runs of a job that are to be submitted."""

    job: Job
    file: Path  # the job's
    out: Path  # the folder of all results
    run: Sequence[str]  # arguments of `mpi-compress run`, without --index
    todo: Mapping[int, Status]  # number of a run → its status
    options: Options
    fresh: bool = False  # runs that are done are rerun

    @property
    def folder(self) -> Path:
        """The folder of the job's results."""
        return self.out / self.job.name

    @cached_property
    def parts(self) -> Sequence[Array]:
        return arrays({spec.index: notes.key_of(spec) for spec in self._specs}, slurm.most_tasks(), self.options.pack)

    def text(self, frozen: Path | None = None) -> str:
        """The script, whose tasks run the job as it is frozen there, or as it is when they start."""
        ranks = max(spec.workers.count for spec in self.job.runs) + 1
        if (asked := self.options.ntasks or 0) > ranks:
            raise UserError(f"--ntasks {asked}: at most {ranks} ranks have work, one a worker, and the master")
        run = [*self.run, "--submitted", str(frozen.absolute())] if frozen else self.run
        of = 1 if self.options.pack > 1 else self.options.ntasks or ranks
        memory = most((spec for spec in self._specs if not spec.missing), of) if slurm.counts_memory() else 0.0
        return script(self.job.name, self.folder, run, self.parts, ranks, self.options, memory)

    @property
    def _specs(self) -> list[RunSpec]:
        return [spec for spec in self.job.runs if spec.index in self.todo]

    def submit(self) -> list[str]:
        """Submit the runs; the numbers of the jobs. UserError: SLURM is missing or refuses, or nothing can be written."""
        if shutil.which("sbatch") is None:
            raise UserError("there is no sbatch here; --dry-run prints the script, to be submitted on a machine that has one")
        with notes.one_at_a_time(self.folder):
            left = to_submit(self.job, self.out, False, self.fresh)  # somebody else may just have submitted it
            now = replace(self, todo={index: status for index, status in left.items() if index in self.todo})
            if not now.todo:
                raise UserError(f"{self.job.name}: somebody else has just submitted these runs")
            now._set_aside()
            return now._submit()

    def _set_aside(self) -> None:
        """Rename the results of the runs ahead: what cannot be read, and what is done; UserError where that fails."""
        for spec in self._specs:
            file = result_file(self.job.name, spec.label, spec.run_id, self.out)
            if not file.is_file():
                continue
            try:
                kept = set_aside(file)
            except OSError as error:
                raise UserError(f"{file}: cannot be renamed, to run it again: {error.strerror}") from None
            why = f"{self.todo[spec.index].reason}; " if self.todo[spec.index].state is State.UNREADABLE else ""
            print_line(f"mpi-compress: {spec.where}{why}it is kept as {kept}, and its run is submitted")

    def _submit(self) -> list[str]:
        try:
            note = notes.new_note(self.folder, self.parts)
            place = note.file.parent
            freeze(self.file, self.job, place)
            (place / "submit.sh").write_text(self.text(place), encoding="utf-8", errors="surrogateescape")
            note.write()
        except OSError as error:
            raise UserError(f"{self.folder}: what is submitted cannot be written there: {error.strerror}") from None
        for k in range(len(self.parts)):
            self._hand_over(note, k)
        return [str(array.job) for array in note.arrays]

    def _hand_over(self, note: notes.Note, k: int) -> None:
        array = note.arrays[k]
        before = [str(note.arrays[k - 1].job)] if k else slurm.queued(self.job.name, self.out) if self.options.max_running else []
        waits = of_array(array, self.parts, before, self.options)
        try:
            slurm.submit(note.file.with_name("submit.sh"), array, [comment(array.mark, self.options), *waits])
        except slurm.NotKnown:
            raise
        except UserError as error:
            if k == 0:
                shutil.rmtree(note.file.parent, ignore_errors=True)
            else:  # SLURM has what comes before
                del note.arrays[k:]
                self._write(note, "what SLURM refused")
            done = sum(len(part.tasks) for part in self.parts[:k])
            said = f"{done} of {len(self.todo)} runs are submitted, and the same command submits the others: " if done else ""
            raise UserError(f"{said}{error}") from None
        self._write(note, f"job {array.job} is submitted, but")

    def _write(self, note: notes.Note, what: str) -> None:
        try:
            note.write()
        except OSError as error:
            cannot = f"{note.file} cannot be written: {error.strerror}"
            raise UserError(f"{what} {cannot}; SLURM's queue still shows what it has, and `plan` finds it there") from None


def check_runs(job: Job, folder: Path) -> None:
    """Refuse a run that is no longer what was submitted, as the note in `folder` has it."""
    run_ids = notes.read_note(folder / notes.NOTE).run_ids()
    for spec in job.runs:
        submitted = run_ids.get(spec.index, "no run of this number")
        if spec.run_id != submitted:
            changed = "its data, or another file that it names, has changed since; submit it again"
            raise UserError(f"{spec.where}run {spec.index} is {spec.run_id}, and {submitted} was submitted: {changed}")
