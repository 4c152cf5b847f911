"""What users install, and what they can build from."""

import os
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
QUIET = ["--quiet", "--disable-pip-version-check"]
SETTINGS = ["--set", "stop.rounds=4", "--set", "data.samples=40", "--quiet"]
"""Makes the demo's runs small."""


@pytest.mark.slow
def test_a_wheel_installs_and_runs_in_a_clean_environment(tmp_path):
    subprocess.run([sys.executable, "-m", "pip", "wheel", *QUIET, "--no-deps", "--wheel-dir", tmp_path, ROOT], check=True)
    (wheel,) = tmp_path.glob("mpi_compress-*.whl")
    venv.create(tmp_path / "clean", with_pip=True)
    bin_ = tmp_path / "clean" / "bin"
    subprocess.run([bin_ / "python", "-m", "pip", "install", *QUIET, f"{wheel}[mpich]"], check=True)
    environment = {**os.environ, "MPI_COMPRESS_CACHE": str(tmp_path / "cache")}
    environment.pop("PYTHONPATH", None)  # a checkout's

    def typed(*line):
        done = subprocess.run([str(part) for part in line], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    job = tmp_path / "job.toml"
    job.write_text(
        '[data]\ngenerator = "gspar"\nsamples = 40\ndim = 8\n[workers]\ncount = 3\n[algorithm]\nname = "cat"\n[stop]\nrounds = 4\n'
    )
    results = []
    for launcher in ([], [bin_ / "mpiexec", "-n", "3"]):
        out = tmp_path / f"out{len(launcher)}"
        typed(*launcher, bin_ / "mpi-compress", "run", job, "--out", out, "--quiet")
        results += (out / "job").glob("*.h5")
    said = typed(bin_ / "mpi-compress", "show", *results)
    assert ("\nequal" in said, said[-11:]) == (True, " 5 records\n")
    for name in ("demo", "jobs/demo.toml"):  # the package's, and its results here
        typed(bin_ / "mpi-compress", "run", name, *SETTINGS)
    assert list((tmp_path / "results" / "demo").glob("CAT*.h5"))
    jobs = {line.split()[0] for line in typed(bin_ / "mpi-compress", "list", "jobs").splitlines()[1:]}
    assert jobs == {f.relative_to(ROOT / "jobs").with_suffix("").as_posix() for f in (ROOT / "jobs").rglob("*.toml")}
    documentation = Path(typed(bin_ / "mpi-compress", "--help").partition("Documentation: ")[2].partition(",")[0])
    assert documentation.is_relative_to(tmp_path)
    assert documentation.read_text() == (ROOT / "docs" / "tutorial.md").read_text()
    typed(bin_ / "mpi-compress", "new", "--package", "my-parts")
    for line in (["wheel", "--no-deps", "--wheel-dir", tmp_path], ["install", "pytest"]):
        subprocess.run([bin_ / "python", "-m", "pip", *line, *QUIET, tmp_path / "my-parts"], check=True)
    typed(bin_ / "mpi-compress", "run", "my-parts/job.toml", "--quiet", "--set", "stop.rounds=4")
    assert "from my-parts 0.1.0: algorithms/normalised-ef21, compressors/near-largest\n" in typed(bin_ / "mpi-compress", "list")
    typed(bin_ / "python", "-m", "pytest", "-q", "my-parts/tests")


@pytest.mark.slow
def test_a_source_distribution_tests_and_documents_itself(tmp_path):
    venv.create(tmp_path / "build", with_pip=True)
    python = tmp_path / "build" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", *QUIET, "setuptools>=68"], check=True)
    code = f"from setuptools.build_meta import build_sdist; build_sdist({str(tmp_path)!r})"
    subprocess.run([python, "-c", code], cwd=ROOT, check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.glob("mpi_compress-*/")
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [name for name in tracked if name not in (".gitignore", ".ci/run") and not (unpacked / name).exists()] == []
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    collected = subprocess.run(collect, cwd=unpacked, env=environment, capture_output=True, text=True)
    assert collected.returncode == 0, collected.stdout
