"""SLURM's commands: tasks submitted, and what its queue knows of them."""

import re
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from mpi_compress.cluster.batch import BEGINS, ENDS, Array
from mpi_compress.cluster.notes import Note, notes
from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import print_line
from mpi_compress.results.files import folders_of

_OURS = "mpi-compress: "
_LAUNCHERS = re.compile(r"(?:srun: error|slurmstepd[^:]*: error|.*EXIT STRING): (.*)")  # what launchers print when a rank ends
_FULL = re.compile(r"MaxSubmitJob|job submit limit", re.IGNORECASE)  # of tasks that an account may have in the queue
_BUSY = re.compile(rf"temporarily|timed out|try again|{_FULL.pattern}", re.IGNORECASE)
_UNREACHED = re.compile(r"configuration source|contact slurm controller($| \(connect)", re.IGNORECASE)  # nothing was sent
_PAUSES = (2.0, 5.0, 15.0, 30.0)  # seconds between tries of a busy SLURM
_MOST = 1001  # SLURM's own MaxArraySize
SILENT = "SILENT"
_ENDED = re.compile("BOOT_FAIL|CANCELLED|COMPLETED|DEADLINE|FAILED|NODE_FAIL|OUT_OF_MEMORY|PREEMPTED|REVOKED|TIMEOUT")


@dataclass(frozen=True)
class Task:
    """A task of an array, which executes one run."""

    id: str  # as SLURM writes it, 17_3
    state: str  # SLURM's word, "" if it has left the queue; SILENT if SLURM does not answer
    reason: str
    log: Path
    ended: str = ""  # SLURM's word for how it ended, "" if SLURM knows nothing of it any more

    def last_try(self) -> "Try":
        """What its output tells of the last time that it started."""
        try:
            lines = self.log.read_text(errors="replace").splitlines()
        except OSError:
            return Try(False, None, [])
        begun = max((i + 1 for i, line in enumerate(lines) if line.startswith(BEGINS)), default=0)
        ends = [line.removeprefix(ENDS).strip() for line in lines[begun:] if line.startswith(ENDS)]
        status = int(ends[-1]) if ends and ends[-1].isdecimal() else None
        return Try(begun > 0, status, [line for line in lines[begun:] if not line.startswith(ENDS)])


@dataclass(frozen=True)
class Try:
    """A task from one start to the next, as its output tells it."""

    begun: bool  # False if no line says where it starts
    status: int | None  # exit status; None if it was killed
    lines: list[str]  # the output, without the lines of the script

    @property
    def last_words(self) -> str:
        """The line of its output that says why it ended: ours, or an exception's, or the last one."""
        ours = [i for i, line in enumerate(self.lines) if line.startswith(_OURS)]
        if not ours:
            launchers = [match[1] for line in self.lines if (match := _LAUNCHERS.match(line))]
            return (launchers or [line.strip() for line in self.lines if line.strip()] or [""])[-1]
        last, *after = self.lines[ours[-1] :]
        if last.endswith(":"):  # a traceback
            last = next((line for line in after if line and not line[0].isspace()), last)
        return last.removeprefix(_OURS)


@dataclass(frozen=True)
class Queue:
    """What SLURM's queue has of this user's tasks."""

    tasks: dict[str, tuple[str, str]] = field(default_factory=dict)  # 17_3 → state, reason
    jobs: dict[str, str] = field(default_factory=dict)  # the mark of an array → number of its job
    silence: str = ""  # why SLURM does not answer; "" if it does, or is not installed


def submit(file: Path, array: Array, options: Sequence[str]) -> None:
    """Hand an array of a script to SLURM, with `options` of sbatch besides the script's, and set the number of its job. If SLURM
    gives no number, its queue is searched for the array: an answer that comes too late may have queued it. UserError: it is
    refused; NotKnown: SLURM does not say whether it has queued it."""
    line = ["sbatch", "--parsable", *options, str(file.absolute()), str(array.first)]
    for pause in (*_PAUSES, None):
        done = subprocess.run(line, capture_output=True, text=True, errors="replace", check=False)
        number = done.stdout.strip().split(";")[0]
        if done.returncode == 0 and number.isdecimal():
            array.job = number
            return
        said = (done.stderr or done.stdout).strip().splitlines() or [f"exit status {done.returncode}, and no word why"]
        queue = ask()
        array.job = queue.jobs.get(array.mark)
        if array.job is not None or queue.silence or pause is None or not _BUSY.search(said[-1]):
            break
        print_line(f"mpi-compress: SLURM is busy ({said[-1]}); trying again in {pause:.0f} s")
        time.sleep(pause)
    if queue.silence and not _UNREACHED.search(said[-1]):
        raise NotKnown(f"sbatch failed, and whether it queued {file} is not known: {said[-1]}")
    if array.job is None:
        later = "; the same command submits what is left, once fewer tasks are in the queue" * bool(_FULL.search(said[-1]))
        raise UserError(f"sbatch refuses {file}: {said[-1]}{later}")


class NotKnown(UserError):
    """SLURM does not say whether it has queued an array."""


def ask() -> Queue:
    """Ask SLURM for all tasks of this user."""
    line = ["squeue", "--noheader", "--array", "--me", "--states=all", "--format=%i|%T|%r|%k"]
    try:
        asked = subprocess.run(line, capture_output=True, text=True, errors="replace", check=False, timeout=60)
    except OSError:  # no SLURM here
        return Queue()
    except subprocess.TimeoutExpired:
        return Queue(silence="squeue does not answer")
    if asked.returncode:
        said = asked.stderr.strip().splitlines() or ["squeue does not answer"]
        return Queue(silence=next((line for line in said if "error" in line or "option" in line), said[-1]))
    queue = Queue()
    for row in asked.stdout.splitlines():
        key, *rest = row.strip().split("|", 3)
        if len(rest) >= 2:
            queue.tasks[key] = (rest[0], rest[1])
            queue.jobs[" ".join(rest[2:]).partition(" ")[0]] = key.partition("_")[0]
    return queue


def tasks(name: str, out: Path) -> dict[str, Task]:
    """The task of the last submission of each run of a job of this `name`, by `notes.key_of`; `out` is the folder of all results.
    UserError: a note of what was submitted cannot be read."""
    found: dict[str, Task] = {}
    queue: Queue | None = None
    for folder in reversed(folders_of(name, out)):
        for note in notes(folder):
            queue = queue or ask()
            _complete(note, queue)
            for array in note.arrays:
                if array.job is not None or queue.silence:
                    found |= {key: _task(array.job, number // array.pack, queue, folder) for key, number in array.tasks.items()}
    return found


def queued(name: str, out: Path) -> list[str]:
    """The jobs of a job of this `name` that have tasks in SLURM's queue."""
    return list(dict.fromkeys(t.id.partition("_")[0] for t in tasks(name, out).values() if t.state not in ("", SILENT)))


def _complete(note: Note, queue: Queue) -> None:
    """Find the number of an array that was queued and whose number was not noted: a disk was full, or `submit` was killed."""
    found = [array for array in note.arrays if array.job is None and array.mark in queue.jobs]
    for array in found:
        array.job = queue.jobs[array.mark]
    if found:
        with suppress(OSError):
            note.write()


def _task(job: str | None, number: int, queue: Queue, folder: Path) -> Task:
    key = f"{job}_{number}" if job is not None else f"task {number} of a submission whose number was not noted"
    log = folder / f"slurm-{job}_{number}.out"
    if queue.silence:
        return Task(key, SILENT, queue.silence, log)
    state, reason = queue.tasks.get(key) or queue.tasks.get(str(job), ("", ""))  # an array that is cancelled whole has no numbers
    return Task(key, "", reason, log, state) if _ENDED.fullmatch(state) else Task(key, state, reason, log)


def most_tasks() -> int:
    """The site's MaxArraySize: numbers of tasks are below it."""
    most = _configured("MaxArraySize")
    return (int(most) if most.isdecimal() else 0) or _MOST


def counts_memory() -> bool:
    """True unless the site says that it gives tasks cores alone: it refuses who asks for memory."""
    given = _configured("SelectTypeParameters")
    return not given or "MEMORY" in given.upper()


def _configured(key: str) -> str:
    """A value of the site's configuration; "" if SLURM does not say it."""
    with suppress(OSError, subprocess.TimeoutExpired):
        line = ["scontrol", "show", "config"]
        said = subprocess.run(line, capture_output=True, text=True, errors="replace", check=False, timeout=60).stdout
        return dict(re.findall(r"^(\w+)\s*=\s*(.*?)\s*$", said, re.MULTILINE)).get(key, "")
    return ""
