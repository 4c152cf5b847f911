"""`submit --pack`: several small runs in one task, each in a process of its own."""

import os
import subprocess

import pytest
from helpers.running import command

import mpi_compress as mc

JOB = """
data = { generator = "gspar", samples = 40, dim = 8 }
objective.mu = "1e-2 L"
algorithm.name = "gd"
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
