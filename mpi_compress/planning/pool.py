"""Run many jobs, some at once where memory allows.

Each runs in a process of its own, `mpi-compress run JOB`. Runs that are done are skipped, and a job that fails stops no other.
"""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from mpi_compress.algorithms import Algorithm
from mpi_compress.core.errors import UserError, placed
from mpi_compress.core.progress import count_text, time_text
from mpi_compress.core.signals import EXIT_STOPPED, Interrupted, Interrupts
from mpi_compress.evidence.outcomes import has_full, loaded
from mpi_compress.exchange.host import available
from mpi_compress.job.loading import Job
from mpi_compress.preparing.memory import most
from mpi_compress.problem.datasets import fetch
from mpi_compress.problem.datasets.known import how_to_get
from mpi_compress.problem.datasets.table import find_set

Report = Callable[[str], None]  # takes a line
Load = Callable[[Path, bool], Job]  # reads a job, at full size or not
Words = Callable[[Path], Sequence[str]]  # gives the options of a job's command
_SHARE = 0.9  # jobs may use so much of the free memory
_PAUSE = 0.1  # seconds between two looks at the jobs that run
_WORDS = {0: "done", 2: "cannot be run here", 3: "a run diverged or failed", EXIT_STOPPED: "stopped, and saved"}


def run_jobs(
    files: Sequence[Path], out: Path, full: bool, at_once: int, report: Report, load: Load = loaded, words: Words = lambda _: ()
) -> dict[Path, int]:
    """Run these jobs, those with most messages first; last, one at a time, those that measure seconds, or
    need more than their share of the free memory. The exit status of each.

    Args:
        full: at full size, where a job has one.
        report: takes a line when a job starts and when it ends.
        words: what `mpi-compress run` of a job is given besides, so that it reads the same as `load`.

    Interrupted: this process was asked to end; the running jobs are saved, and the same call continues them.
    """
    share, jobs, alone = _SHARE * available() / at_once, dict[Path, Job](), dict[Path, bool]()
    for file, job, size in _readable(files, full, report, load):
        jobs[file], alone[file] = job, measures_seconds(job) or size > share
    status = {file: 2 for file in files if file not in jobs}
    waiting = sorted(jobs, key=lambda file: (alone[file], -_messages(jobs[file])))
    began, running = time.monotonic(), dict[Path, tuple[subprocess.Popen[bytes], float]]()
    with Interrupts().caught() as asked, asked.in_rounds():
        while waiting or running:
            if why := asked.wish():
                waiting = []
                for process, _ in running.values():
                    process.send_signal(signal.SIGTERM)
            if waiting and len(running) < (1 if alone[waiting[0]] else at_once):
                job = jobs[file := waiting.pop(0)]
                line = [*_command(job), str(file), "--out", str(out), *words(file), *["--full"] * (full and has_full(file))]
                running[file] = subprocess.Popen(line), time.monotonic()
                report(f"{file}: {count_text(len(job.runs), 'run')}")
                continue
            for file in [file for file, (process, _) in running.items() if why or process.poll() is not None]:
                process, started = running.pop(file)
                status[file] = found = process.wait()
                report(f"{file}: {_WORDS.get(found, f'failed, exit status {found}')}, {time_text(time.monotonic() - started)}")
            time.sleep(_PAUSE)
    if why := asked.wish():
        raise Interrupted(why)
    report(f"{count_text(len(jobs), 'job')} in {time_text(time.monotonic() - began)}")
    return status


def _readable(files: Sequence[Path], full: bool, report: Report, load: Load) -> Iterator[tuple[Path, Job, float]]:
    """The jobs that can be read, and the bytes that each needs, as far as known; `report` takes why the others cannot."""
    for file in files:
        try:
            job = load(file, full)
            with placed(f"{file}: "):
                size = most(job.runs)
        except UserError as error:
            report(str(error))
        else:
            yield file, job, size


def _messages(job: Job) -> int:
    return sum((spec.stop.rounds or 0) * spec.workers.count for spec in job.runs)


def _command(job: Job) -> list[str]:
    """One process; mpiexec where workers share memory, which run at the same time only on ranks of their own: one for each."""
    run = [sys.executable, "-m", "mpi_compress", "run", "--quiet"]
    ranks = [spec.workers.count for spec in job.runs if not isinstance(spec.algorithm, Algorithm)]
    beside = Path(sys.executable).with_name("mpiexec")
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    return [mpiexec, "-n", str(max(ranks)), *run] if ranks and mpiexec else [*run, "--one-process"]


def measures_seconds(job: Job) -> bool:
    """True if the job's figure or claims show seconds, which other jobs at the same time would change."""
    return "seconds" in (job.figure.x, job.figure.y) or any("seconds(" in claim.value for claim in job.claims)


def get_missing(files: Sequence[Path], report: Report) -> None:
    """Fetch the sets that jobs at full size name and that are not here."""
    for name in dict.fromkeys(name for file in files for name in _sets(file)):
        try:
            find_set(name, "data")
        except UserError:
            try:
                report(f"{name}: {fetch.get(name, None, False, report)}")
            except UserError as error:
                report(f"{name}: {error}")


def _sets(file: Path) -> Iterator[str]:
    with suppress(UserError):
        for table in [spec.data for spec in loaded(file, True).runs]:
            yield from (name for name in (table.name, table.test) if name and how_to_get(name))
