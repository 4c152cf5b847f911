"""How runs begin and end: wrong launchers, failing ranks, ranks that stop answering, interrupts. Each ends in one message, and nothing hangs."""

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers.layouts import assert_equal
from helpers.running import BIN, PATIENT, command, rows_in, wait_for

import mpi_compress as mc
from mpi_compress.core.errors import UserError
from mpi_compress.exchange.host import refuse_little_shared_memory

FAILING_PART = """
from dataclasses import dataclass
import mpi_compress as mc

@mc.compressors.register("breaks")
@dataclass(frozen=True)
class Breaks(mc.Compressor):
    worker: int = 0

    def compress(self, v, t):
        if t.k == 3 and t.who in (self.worker, -self.worker - 1) or self.worker < 0 and t.k == 3:
            raise RuntimeError("broken on purpose")
        return mc.compressors.compressors["top-k"](k=1).compress(v, t)
"""

JOB = """
plugins = ["failing_part"]
data = { generator = "gspar", samples = 40, dim = 20 }
objective = { mu = 0.1 }
workers = { count = 4 }
stop = { rounds = 6 }
algorithm = { name = "gd" }
"""


@pytest.fixture
def failing_job(tmp_path):
    (tmp_path / "failing_part.py").write_text(FAILING_PART)

    def write(worker: int):
        job = tmp_path / "job.toml"
        job.write_text(f'{JOB}\nup = {{ compressor = {{ name = "breaks", worker = {worker} }} }}')
        return job

    return write


SLOW = [pytest.param(0, marks=pytest.mark.slow, id="the first worker"), pytest.param(3, marks=pytest.mark.slow, id="the last worker")]


@pytest.mark.parametrize("worker", [*SLOW, pytest.param(-1, id="all workers at once")])
def test_an_exception_on_any_rank_ends_all_with_one_message(worker, failing_job, tmp_path):
    done = command("run", failing_job(worker), "--out", tmp_path, "--quiet", ranks=5)
    assert done.returncode != 0
    assert done.stderr.count("RuntimeError: broken on purpose") == 1
    assert done.stderr.count("Traceback") == 0
    assert "failing_part.py, line " in done.stderr
    assert not list(tmp_path.rglob("*.h5"))


def test_in_one_process_a_failing_run_lets_the_others_go_on(failing_job, tmp_path):
    job = failing_job(1)
    text = job.read_text()
    job.write_text(text + '\n[[run]]\nlabel = "breaks"\n[[run]]\nlabel = "works"\nup = { compressor = "identity" }\n')
    done = command("run", job, "--out", tmp_path)
    assert done.returncode == 3
    assert "breaks: failed, the others go on" in done.stderr
    assert "works: complete" in done.stderr
    assert "broken on purpose" in command("plan", job, "--out", tmp_path).stdout


@pytest.mark.parametrize("variables", [
    {"SLURM_NTASKS": "5", "SLURM_PROCID": "0"},
    {"SLURM_STEP_NUM_TASKS": "5", "SLURM_NTASKS": "5", "SLURM_PROCID": "0"},
    {"OMPI_COMM_WORLD_SIZE": "5", "OMPI_COMM_WORLD_RANK": "0"},
], ids=["sbatch", "srun", "another MPI's mpiexec"])  # fmt: skip
def test_several_tasks_where_mpi_sees_one_rank_stop_with_one_line(variables, small_job, tmp_path):
    done = command("run", small_job, "--out", tmp_path, **variables)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "5 tasks" in done.stderr
    assert "--one-process" in done.stderr
    other_task = {k: "3" if k.endswith(("PROCID", "RANK")) else v for k, v in variables.items()}
    silent = command("run", small_job, "--out", tmp_path, **other_task)
    assert (silent.returncode, silent.stderr) == (2, "")
    assert not list(tmp_path.rglob("*.h5"))


def test_one_process_on_purpose_inside_an_allocation(small_job, tmp_path):
    done = command("run", small_job, "--only", "CAT", "--out", tmp_path, "--one-process", SLURM_NTASKS="5", SLURM_PROCID="0")
    assert done.returncode == 0, done.stderr


def test_a_program_may_run_any_number_of_jobs_on_its_ranks(tmp_path):
    """MPI has 2048 communicators, most of which are taken here: what a run takes of them it gives back."""
    script = tmp_path / "many.py"
    script.write_text(
        "from mpi4py import MPI\nfrom mpi_compress.exchange.ranks import ranks_of\n"
        "held = [MPI.COMM_SELF.Dup() for _ in range(2000)]\n"
        "for _ in range(60):\n    ranks_of(MPI.COMM_WORLD).close()\n"
        "if MPI.COMM_WORLD.rank == 0:\n    print('done')\n"
    )
    done = subprocess.run([BIN / "mpiexec", "-n", "2", sys.executable, script], capture_output=True, text=True, timeout=PATIENT)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_one_rank_compiles_and_the_others_load(tmp_path):
    script = tmp_path / "compiles.py"
    script.write_text(
        "import numpy as np\nfrom mpi4py import MPI\nfrom mpi_compress.exchange.ranks import ranks_of\n"
        "from mpi_compress.kernels import compilations\nfrom mpi_compress.kernels.vectors import sum_of_squares\n"
        "compiled = []\n"
        "with compilations(compiled.append, lambda: None):\n"
        "    ranks_of(MPI.COMM_WORLD).compiling_once(lambda: sum_of_squares(np.ones(3)))\n"
        "found = MPI.COMM_WORLD.gather(compiled)\n"
        "if MPI.COMM_WORLD.rank == 0:\n    print(found)\n"
    )
    line, env = [BIN / "mpiexec", "-n", "2", sys.executable, script], {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    for compiled in (["vectors.sum_of_squares"], []):  # from an empty cache, and once more
        done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENT, env=env)
        assert (done.returncode, done.stdout) == (0, f"{[compiled, []]}\n"), done.stderr


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="shared memory has no names in the file system here")
def test_ranks_that_are_killed_leave_no_shared_memory(tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(
        "import os, re, signal\nfrom pathlib import Path\nfrom mpi4py import MPI\nfrom mpi_compress.exchange.ranks import ranks_of\n"
        "mapped = lambda: set(re.findall(r'/dev/shm/mpich_shm\\w+', Path('/proc/self/maps').read_text()))\n"
        "names = mapped()\nranks = ranks_of(MPI.COMM_WORLD)\nif ranks.rank:\n    MPI.COMM_WORLD.Barrier()\n"
        "Path('left').write_text(repr((len(names), [name for name in names if os.path.exists(name)])))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([BIN / "mpiexec", "-n", "2", sys.executable, script], cwd=tmp_path, capture_output=True, timeout=PATIENT)
    assert (tmp_path / "left").read_text() == "(1, [])"


@pytest.mark.skipif(sys.platform != "linux", reason="systems other than Linux do not tell of a parent's death")
def test_ranks_and_mpiexec_end_when_the_launcher_s_proxy_is_killed(tmp_path):
    script = tmp_path / "waits.py"
    script.write_text(
        "import os, time\nfrom pathlib import Path\nfrom mpi_compress.exchange.ranks import launched\nlaunched()\n"
        "Path(f'{os.getpid()}.waits').touch()\ntime.sleep(600)\n"
    )
    with subprocess.Popen([BIN / "mpiexec", "-n", "2", sys.executable, script], cwd=tmp_path) as program:
        while len(waiting := [*tmp_path.glob("*.waits")]) < 2:
            assert program.poll() is None
            time.sleep(0.05)
        ranks = [int(file.stem) for file in waiting]
        os.kill(int(Path(f"/proc/{ranks[0]}/stat").read_text().rpartition(")")[2].split()[1]), signal.SIGKILL)
        assert program.wait(PATIENT) != 0
    end = time.monotonic() + 10.0
    while left := [rank for rank in ranks if Path(f"/proc/{rank}").exists()]:
        assert time.monotonic() < end, left
        time.sleep(0.05)


def test_too_little_shared_memory_is_refused_before_mpich_ends_in_a_bus_error(monkeypatch):
    for free, first, size in ((2.0, "0", 64.0), (1.0, "1", 1.0)):  # the first rank of a host takes it for all
        monkeypatch.setattr(os, "statvfs", lambda _, f=free, s=size: SimpleNamespace(f_frsize=1000, f_bavail=f * 1e3, f_blocks=s * 1e3))
        monkeypatch.setenv("MPI_LOCALNRANKS", "2")
        monkeypatch.setenv("MPI_LOCALRANKID", first)
        with pytest.raises(UserError, match=rf"^/dev/shm: {free:g} MB are free, and MPICH takes 2.12 MB there; "):
            refuse_little_shared_memory()
        monkeypatch.setenv("MPI_LOCALNRANKS", "1" if first == "0" else "0")
        refuse_little_shared_memory()


SLOW_JOB = """
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
        Path("job.toml").write_text(SLOW_JOB.format(workers=workers))
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
