"""A rank that stops answering in the rounds is named, and all end; a terminal that closes saves the run."""

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from helpers.layouts import assert_equal
from helpers.running import BIN, PATIENT, rows_in, wait_for

import mpi_compress as mc
from mpi_compress.core.errors import UserError

JOB = """
seed = 7
plugins = ["slow_part"]
data = {{ generator = "gspar", samples = 60, dim = 20 }}
objective = {{ mu = 0.1 }}
stop = {{ rounds = 400 }}
checkpoint = {{ every = 5 }}
algorithm = {{ name = "gd" }}
up = {{ compressor = "slow" }}
[workers]
count = 3
{workers}
"""
PART = """
import os, time
from dataclasses import dataclass
import mpi_compress as mc
from mpi_compress.messages.compressors.largest import TopK

@mc.compressors.register("slow")
@dataclass(frozen=True)
class Slow(mc.Compressor):
    def compress(self, v, t):
        time.sleep(float(os.environ.get("SLOW", "0")))
        return TopK(3).compress(v, t)
"""


@pytest.fixture
def job(tmp_path, monkeypatch):
    """Writes the job with further keys of [workers]."""
    monkeypatch.chdir(tmp_path)
    Path("slow_part.py").write_text(PART)

    def write(workers: str) -> Path:
        Path("job.toml").write_text(JOB.format(workers=workers))
        return Path("job.toml")

    return write


def test_patience_is_a_time_and_no_part_of_a_run(job):
    runs = [mc.load_job(job(text)).runs[0] for text in ("", 'patience = "2 h"', "patience = 0", 'patience = "0"', "patience = 2.5")]
    assert [run.workers.patience_seconds for run in runs] == [1800, 7200, 0, 0, 2.5]
    assert len({run.run_id for run in runs}) == 1
    for wrong in ("patience = -1", 'patience = "soon"', "patience = inf", "patience = true"):
        with pytest.raises(UserError, match="patience"):
            mc.load_job(job(wrong))


def started(file: Path, ranks: int, **variables: str) -> subprocess.Popen[str]:
    line = [BIN / "mpiexec", "-n", ranks, sys.executable, "-m", "mpi_compress", "run", file, "--quiet"]
    return subprocess.Popen(
        [str(a) for a in line], env={**os.environ, "SLOW": "0.05", **variables}, stderr=subprocess.PIPE, text=True
    )


def process_of(rank: int, program: subprocess.Popen) -> int:
    """The process of a rank below mpiexec."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            variables = (place / "environ").read_text().split("\0")
            command = (place / "cmdline").read_text()
        except (OSError, UnicodeDecodeError):
            continue
        if (
            f"PMI_RANK={rank}" in variables
            and f"MARK={program.args[-2]}" in variables
            and "mpi_compress" in command
            and str(Path.cwd()) == os.readlink(place / "cwd")
        ):
            return int(place.name)
    raise AssertionError(f"rank {rank} is not there")


@pytest.mark.slow
@pytest.mark.parametrize(("exchange", "crowded", "hung"), [
    *(("p2p", crowded, hung) for crowded in "10" for hung in (2, 0)),
    *(("allgather", "1", hung) for hung in (2, 0)),
])  # fmt: skip
def test_a_rank_that_hangs_is_named_and_what_was_saved_goes_on_to_the_same_bytes(exchange, crowded, hung, job):
    file = job(f'exchange = "{exchange}"\npatience = "10 s"')  # a rank without a core is quiet for seconds
    program = started(file, 3, MARK=str(file), MPI_COMPRESS_CROWDED=crowded)
    wait_for(lambda: program.poll() is not None or (rows_in(Path("results")) and list(Path("results").rglob("*.ckpt"))))
    os.kill(process_of(hung, program), signal.SIGSTOP)
    said = program.communicate(timeout=PATIENT)[1]
    assert program.returncode == 3, said
    assert f"rank {hung} has not answered since 2" in said
    assert "Traceback" not in said
    assert list(Path("results").rglob("*.ckpt"))
    (rest,) = mc.run(mc.load_job(file))
    (whole,) = mc.run(mc.load_job(file), out="whole")
    assert_equal(whole.file, rest.file)


@pytest.mark.slow
def test_a_job_that_is_suspended_as_a_whole_goes_on(job):
    """SLURM suspends all ranks of a job, perhaps for longer than their patience."""
    file = job('patience = "2 s"')
    program = started(file, 3, MARK=str(file), SLOW="0.01")
    wait_for(lambda: rows_in(Path("results")))
    ranks = [process_of(rank, program) for rank in range(3)]
    for pid in ranks:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(8)
    for pid in ranks:
        os.kill(pid, signal.SIGCONT)
    said = program.communicate(timeout=PATIENT)[1]
    assert program.returncode == 0, said


def take_terminal() -> None:
    """Be the program of the terminal that the input comes from, also where the tests themselves run under nohup."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def test_a_terminal_that_closes_saves_the_run(job):
    file = job("")
    ours, theirs = pty.openpty()
    line = [sys.executable, "-m", "mpi_compress", "run", str(file)]
    program = subprocess.Popen(
        line, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "SLOW": "0.05"}, start_new_session=True,
        preexec_fn=take_terminal,
    )  # fmt: skip
    os.close(theirs)
    wait_for(lambda: rows_in(Path("results")))
    os.close(ours)
    assert program.wait(timeout=PATIENT) == 75
    (part,) = Path("results").rglob("*.part")
    assert mc.read(part).attrs["reason"] == "stopped by SIGHUP"


def test_under_nohup_a_run_goes_on(job):
    file = job("")
    program = subprocess.Popen(
        [sys.executable, "-m", "mpi_compress", "run", str(file), "--quiet"], env={**os.environ, "SLOW": "0.002"},
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )  # fmt: skip
    wait_for(lambda: rows_in(Path("results")))
    program.send_signal(signal.SIGHUP)
    assert program.wait(timeout=PATIENT) == 0


@pytest.mark.parametrize("kind", ["p2p", "allgather"])
def test_every_exchange_gets_the_patience_of_the_job(kind):
    program = (
        "from mpi4py import MPI; from mpi_compress.exchange.ranks import MPIRanks; "
        f"made = MPIRanks(MPI.COMM_WORLD).exchange(3, {kind!r}, 'worker', 7.0); "
        "print(made._data.patience.seconds, made._control.patience.seconds)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENT)
    assert done.stdout.split() == ["7.0", "7.0"], done.stderr
