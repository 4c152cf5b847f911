"""A job's runs handed out to the ranks of mpi4py.futures: the same files as those of one process."""

import subprocess
import sys
from pathlib import Path

from helpers.layouts import assert_equal
from helpers.running import BIN, SMALL_JOB

import mpi_compress as mc

SCRIPT = Path(__file__).parents[2] / "jobs" / "slurm" / "over-hosts.py"


def test_runs_that_are_handed_out_have_the_bytes_of_one_process(tmp_path):
    (tmp_path / "small.toml").write_text(SMALL_JOB)
    line = [BIN / "mpiexec", "-n", "3", sys.executable, "-m", "mpi4py.futures", SCRIPT, "small.toml", "out"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 5), done.stderr
    for whole in mc.run(tmp_path / "small.toml", out=tmp_path / "one"):
        assert_equal(whole.file, tmp_path / "out" / "small" / whole.file.name)
