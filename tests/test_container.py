"""The steps of the container recipes, in an empty environment: jobs/slurm/container.sh is what both images run."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SLURM = ROOT / "jobs" / "slurm"


def bare(line, folder, **variables):
    """Run a line with nothing of this session but its package index."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "LANG", "LC_"))}
    environment = {**kept, "PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(folder / "home"), **variables}
    return subprocess.run(list(map(str, line)), cwd=folder, env=environment, capture_output=True, text=True, check=True)


@pytest.mark.slow
def test_the_steps_of_the_image_make_one_that_compiles_nothing_more(tmp_path):
    prefix = tmp_path / "opt"
    bare(["sh", SLURM / "container.sh", ROOT, prefix], tmp_path)
    assert [*prefix.glob("lib/python3*/site-packages/mpi_compress/cli/__pycache__/main.*.pyc")]
    first = bare([prefix / "bin" / "start", "run", "demo", "-v", "--set", "stop.rounds=5"], tmp_path)
    assert "compiling kernels" not in first.stderr
    kernels = tmp_path / "home" / ".cache" / "mpi_compress" / "kernels-of-image"
    assert {f.name for f in (prefix / "kernels").rglob("*.nbc")} <= {f.name for f in kernels.rglob("*.nbc")}
    line = [prefix / "bin" / "mpiexec", "-n", "3", prefix / "bin" / "start", "run", "demo", "--quiet", "--out", "ranks"]
    bare([*line, "--set", "stop.rounds=5"], tmp_path)
    results = [next((tmp_path / out / "demo").glob("CAT*.h5")) for out in ("results", "ranks")]
    assert "equal, bit for bit: 6 records" in bare([prefix / "bin" / "start", "show", *results], tmp_path).stdout


def test_both_recipes_run_these_steps_on_debian_and_name_no_registry_of_images():
    for name in ("mpi-compress.def", "Containerfile"):
        text = (SLURM / name).read_text()
        assert "sh /src/jobs/slurm/container.sh /src" in text
        assert "/opt/mpi-compress/bin/start" in text
        assert set(re.findall(r"https?://([\w.-]+)", text)) <= {"deb.debian.org"}
        assert not re.search(r"\b(docker|ghcr|quay)\.io\b", text)
