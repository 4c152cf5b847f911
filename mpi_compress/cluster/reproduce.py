"""Run many jobs, some at once where memory allows.

Each is a process of its own, `mpi-compress run JOB`: what is done is not run again, and one that fails stops no other.
"""

import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mpi_compress.algorithms.async_sgd import AsyncSGD
from mpi_compress.core.errors import UserError
from mpi_compress.core.signals import EXIT_STOPPED, Interrupted, Interrupts
from mpi_compress.engine import memory_needs as footprint
from mpi_compress.job.loading import Job
from mpi_compress.problem.datasets import fetch
from mpi_compress.problem.datasets.known import KNOWN
from mpi_compress.problem.datasets.table import find_set
from mpi_compress.report.outcomes import has_full, loaded

_SHARE = 0.9  # of the memory that is free may be used
_WORDS = {0: "done", 2: "cannot be run here", 3: "a run diverged or failed", EXIT_STOPPED: "stopped, and saved"}


def reproduce(files: Sequence[Path], out: Path, full: bool, at_once: int, tell: Callable[[str], None]) -> dict[Path, int]:
    """Run these jobs, those with most messages first, and those that measure seconds alone, at the end.

    Args:
        full: at full size, where a job has one.
        tell: is told a line when a job starts and when it ends.

    Returns:
        the exit status of each, as `mpi-compress run` gives it.

    Raises:
        Interrupted: this process was asked to end; what was under way is saved, and the same call goes on.
    """
    status: dict[Path, int] = {}
    jobs: dict[Path, Job] = {}
    for file in files:
        try:
            jobs[file] = loaded(file, full)
        except UserError as error:
            status[file] = 2
            tell(str(error))
    order = sorted(jobs, key=lambda file: (measures_seconds(jobs[file]), -_messages(jobs[file])))
    began, team = time.monotonic(), _Team(out, tell)
    with Interrupts().caught(), ThreadPoolExecutor(at_once) as pool:
        try:
            status |= zip(order, pool.map(lambda file: team.play(file, jobs[file], full and has_full(file)), order), strict=True)
        except Interrupted:
            team.end()
            raise
    tell(f"{len(order)} jobs in {_minutes(time.monotonic() - began)}")
    return status


class _Team:
    """The processes under way, and the memory that they need together."""

    def __init__(self, out: Path, tell: Callable[[str], None]):
        self._out, self._tell = out, tell
        self._free, self._used, self._ended = _SHARE * footprint.available(), 0.0, False
        self._running: dict[Path, subprocess.Popen[bytes]] = {}
        self._changed = threading.Condition()

    def play(self, file: Path, job: Job, full: bool) -> int:
        """Run a job once there is room for it; whoever is alone has room."""
        needed = max(self._free, 1.0) if measures_seconds(job) else needs(job)
        with self._changed:
            self._changed.wait_for(lambda: self._ended or not self._running or self._used + needed <= self._free)
            if self._ended:
                return EXIT_STOPPED
            process = subprocess.Popen([*_command(job), str(file), "--out", str(self._out), *(["--full"] if full else [])])
            self._running[file] = process
            self._used += needed
        self._tell(f"{file}: {len(job.runs)} runs")
        started = time.monotonic()
        found = process.wait()
        with self._changed:
            del self._running[file]
            self._used -= needed
            self._changed.notify_all()
        self._tell(f"{file}: {_WORDS.get(found, f'failed, exit status {found}')}, {_minutes(time.monotonic() - started)}")
        return found

    def end(self) -> None:
        """Have what is under way saved, and start nothing more."""
        with self._changed:
            self._ended = True
            for process in self._running.values():
                process.send_signal(signal.SIGTERM)
            self._changed.notify_all()


def _command(job: Job) -> list[str]:
    """In one process; asynchronous workers under mpiexec, since they are at work at once only on ranks of their own."""
    run = [sys.executable, "-m", "mpi_compress", "run", "--quiet"]
    ranks = [spec.workers.count for spec in job.runs if isinstance(spec.algorithm, AsyncSGD)]
    beside = Path(sys.executable).with_name("mpiexec")
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    return [mpiexec, "-n", str(min(ranks)), *run] if ranks and mpiexec else [*run, "--one-process"]


def measures_seconds(job: Job) -> bool:
    """Whether others at work beside it would change what it shows."""
    return "seconds" in (job.figure.x, job.figure.y) or any("seconds(" in claim.value for claim in job.claims)


def needs(job: Job) -> float:
    """Bytes that a job takes in one process, as far as that is known before its data are read."""
    shapes = [(spec, footprint.shape_of(spec)) for spec in job.runs]
    return footprint.PROCESS + max(footprint.needs(spec, shape, 1)[0] if shape else 0.0 for spec, shape in shapes)


def get_missing(files: Sequence[Path], tell: Callable[[str], None]) -> None:
    """Fetch the sets that jobs at full size name and that are not here. Where one cannot be had, its stand-in stays."""
    for name in dict.fromkeys(name for file in files for name in _sets(file)):
        try:
            find_set(name, "data")
        except UserError:
            try:
                tell(f"{name}: {fetch.get(name, None, False, tell)}")
            except UserError as error:
                tell(f"{name}: {error}")


def _sets(file: Path) -> Iterator[str]:
    """The sets of the collection that a job wants."""
    try:
        tables = [spec.data for spec in loaded(file, True).runs]
    except UserError:
        return
    for table in tables:
        yield from (n for n in (table.stand_in_for or table.name, table.test) if n in KNOWN and KNOWN[n].files)


def _messages(job: Job) -> int:
    """How many messages its workers send at most: a guess at how long it takes beside others."""
    return sum((spec.stop.rounds or 0) * spec.workers.count for spec in job.runs)


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min"
