"""How runs begin and end: wrong launchers, failing ranks, interrupts. Each ends in one message, and nothing hangs."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers.running import BIN, PATIENT, command

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
    """MPI has some 2000 communicators: what a run takes of them it gives back."""
    script = tmp_path / "many.py"
    script.write_text(
        "from mpi4py import MPI\nfrom mpi_compress.exchange.ranks import ranks_of\n"
        "for _ in range(1000):\n    ranks_of(MPI.COMM_WORLD).close()\n"
        "if MPI.COMM_WORLD.rank == 0:\n    print('done')\n"
    )
    done = subprocess.run([BIN / "mpiexec", "-n", "2", sys.executable, script], capture_output=True, text=True, timeout=PATIENT)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


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
