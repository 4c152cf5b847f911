"""SLURM's queue: scripts submitted, and the state of their tasks."""

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mpi_compress.cluster.batch import queue_name
from mpi_compress.core.errors import UserError
from mpi_compress.results.files import folders_of

_OURS = "mpi-compress: "
_LAUNCHERS = re.compile(r"(?:srun: error|slurmstepd: error|.*EXIT STRING): (.*)")  # what launchers print when a rank ends
SILENT = "SILENT"
_NOTES = "submitted.json"


@dataclass(frozen=True)
class Task:
    """A task of an array, which plays one run."""

    id: str  # as SLURM writes it, 17_3
    state: str  # SLURM's word, "" if it has left the queue; SILENT if SLURM does not answer
    reason: str
    log: Path

    def last_words(self) -> str:
        """The line of its output that says why it ended: ours, or an exception's, or the last one."""
        try:
            lines = self.log.read_text(errors="replace").splitlines()
        except OSError:
            return ""
        ours = [i for i, line in enumerate(lines) if line.startswith(_OURS)]
        if not ours:
            launchers = [match[1] for line in lines if (match := _LAUNCHERS.match(line))]
            return (launchers or [line.strip() for line in lines if line.strip()] or [""])[-1]
        last, after = lines[ours[-1]], lines[ours[-1] + 1 :]
        if last.endswith(":"):  # a traceback
            last = next((line for line in after if line and not line[0].isspace()), last)
        return last.removeprefix(_OURS)


def submit(text: str, folder: Path, run_ids: Mapping[int, str]) -> str:
    """Submit a script, note which run is which task, and return the job's number; UserError if SLURM is missing or refuses."""
    if shutil.which("sbatch") is None:
        raise UserError("there is no sbatch here; --dry-run prints the script, to be submitted on a machine that has one")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "submit.sh"
    file.write_text(text)
    done = subprocess.run(["sbatch", "--parsable", str(file)], capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or [f"exit status {done.returncode}, and no word why"]
        raise UserError(f"sbatch refuses {file}: {said[-1]}")
    number = done.stdout.strip().split(";")[0]
    notes = [*_notes(folder), {"job": number, "tasks": {run_id: index for index, run_id in run_ids.items()}}]
    (folder / _NOTES).write_text(json.dumps(notes, indent=1))
    return number


def tasks(name: str, out: Path) -> dict[str, Task]:
    """Run id → the task of its last submission; `out` is the folder of all results, `name` the job's."""
    found = {}
    for folder in reversed(folders_of(name, out)):
        notes = _notes(folder)
        queue, silence = _queue(folder.relative_to(out).as_posix()) if notes else ({}, "")
        for note in notes:
            for run_id, index in note["tasks"].items():
                key = f"{note['job']}_{index}"
                state, reason = (SILENT, silence) if silence else queue.get(key, ("", ""))
                found[run_id] = Task(key, state, reason, folder / f"slurm-{key}.out")
    return found


def _queue(name: str) -> tuple[dict[str, tuple[str, str]], str]:
    """State and reason of each of this user's tasks of a job; and why SLURM does not answer, "" if it does or is not installed."""
    line = ["squeue", "--noheader", "--array", "--me", f"--name={queue_name(name)}", "--format=%i|%T|%r"]
    try:
        asked = subprocess.run(line, capture_output=True, text=True, check=False, timeout=30)
    except OSError:  # no SLURM here
        return {}, ""
    except subprocess.TimeoutExpired:
        return {}, "squeue does not answer"
    if asked.returncode:
        said = asked.stderr.strip().splitlines() or ["squeue does not answer"]
        return {}, next((line for line in said if "error" in line or "option" in line), said[-1])
    rows = [row.strip().split("|", 2) for row in asked.stdout.splitlines() if row.count("|") == 2]
    return {key: (state, reason) for key, state, reason in rows}, ""


def _notes(folder: Path) -> list[dict]:
    try:
        return json.loads((folder / _NOTES).read_text())
    except (OSError, ValueError):
        return []
