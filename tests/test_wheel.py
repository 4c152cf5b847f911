"""What users install."""

import os
import subprocess
import sys
import venv

import pytest


@pytest.mark.slow
def test_a_wheel_installs_and_runs_in_a_clean_environment(tmp_path):
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    quiet = ["--quiet", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *quiet, "--no-deps", "--wheel-dir", tmp_path, root], check=True)
    (wheel,) = tmp_path.glob("mpi_compress-*.whl")
    venv.create(tmp_path / "clean", with_pip=True)
    bin_ = tmp_path / "clean" / "bin"
    subprocess.run([bin_ / "python", "-m", "pip", "install", *quiet, f"{wheel}[mpich]"], check=True)
    job = tmp_path / "job.toml"
    job.write_text(
        '[data]\ngenerator = "gspar"\nsamples = 40\ndim = 8\n[workers]\ncount = 3\n[algorithm]\nname = "cat"\n[stop]\nrounds = 4\n'
    )
    results = []
    for launcher in ([], [bin_ / "mpiexec", "-n", "3"]):
        out = tmp_path / f"out{len(launcher)}"
        done = subprocess.run(
            [*launcher, bin_ / "mpi-compress", "run", job, "--out", out, "--quiet"],
            cwd=tmp_path, env={**os.environ, "MPI_COMPRESS_CACHE": str(tmp_path / "cache")}, capture_output=True, text=True,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        results += (out / "job").glob("*.h5")
    shown = subprocess.run([bin_ / "mpi-compress", "show", *results], capture_output=True, text=True, check=True).stdout
    assert "equal, bit for bit: 5 rows" in shown
