"""Several runs at once: in one task of SLURM by `submit --pack`, and on the ranks of mpi4py.futures."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.layouts import assert_equal
from helpers.running import BIN, SMALL_JOB, command

import mpi_compress as mc

JOB = """
data = { generator = "gspar", samples = 40, dim = 8 }
objective.mu = "1e-2 L"
algorithm = { name = "gd", batch = 2 }
stop.rounds = 20
grid.seed = [0, 1, 2, 3, 4]
"""


@pytest.fixture
def job(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.toml").write_text(JOB)
    mc.run(mc.load_job("job.toml", index=3))
    return tmp_path


def test_a_task_plays_those_of_its_runs_that_are_to_do(job):
    script = command("submit", "job.toml", "--pack", "2", "--dry-run").stdout
    assert "#SBATCH --array=0-2" in script
    assert "#SBATCH --cpus-per-task=2" in script
    assert "#SBATCH --ntasks=1" in script
    (job / "submit.sh").write_text(script)
    done = subprocess.run(["bash", "submit.sh"], env={**os.environ, "SLURM_ARRAY_TASK_ID": "0"}, capture_output=True, text=True)
    assert (done.returncode, len(list(job.glob("results/job/*.h5")))) == (0, 3), done.stderr
    done = subprocess.run(["bash", "submit.sh"], env={**os.environ, "SLURM_ARRAY_TASK_ID": "1"}, capture_output=True, text=True)
    assert (done.returncode, len(list(job.glob("results/job/*.h5")))) == (0, 4), done.stderr  # run 3 was done before
    assert done.stderr.count(": complete") == 1


def test_a_packed_run_has_one_process(job):
    done = command("submit", "job.toml", "--pack", "2", "--ntasks", "3", "--dry-run")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--pack 2" in done.stderr


SCRIPT = Path(__file__).parents[2] / "jobs" / "slurm" / "over-hosts.py"


def test_runs_that_are_handed_out_have_the_bytes_of_one_process(tmp_path):
    (tmp_path / "small.toml").write_text(SMALL_JOB)
    line = [BIN / "mpiexec", "-n", "3", sys.executable, "-m", "mpi4py.futures", SCRIPT, "small.toml", "out"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 5), done.stderr
    for whole in mc.run(tmp_path / "small.toml", out=tmp_path / "one"):
        assert_equal(whole.file, tmp_path / "out" / "small" / whole.file.name)
