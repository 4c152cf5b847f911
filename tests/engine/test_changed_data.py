"""Cached data that another program changes, cuts short or removes while a run reads them: the run ends with a line that names them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os, sys
from pathlib import Path
import mpi_compress as mc
from mpi_compress.core.ending import run_to_the_end
from mpi_compress.problem.datasets import opening

opening.MAPPED_FROM = int(sys.argv[2])
job = {
    "data": {"generator": "gspar", "samples": 4000, "dim": 60}, "objective": {"mu": 1e-3}, "workers": {"count": 2},
    "algorithm": {"name": "gd", "step": 0.1}, "stop": {"rounds": 20}, "checkpoint": {"every": 5},
    "run": [{"label": "one"}, {"label": "two", "seed": 1}],
}
def change(row):
    if (row["label"], row["round"]) != ("one", 2):
        return
    (file,) = Path(os.environ["MPI_COMPRESS_CACHE"], "data").glob("gspar-????????????????.h5")
    if sys.argv[1] == "rewrite":
        with file.open("r+b") as out:
            out.seek(file.stat().st_size // 2)
            out.write(b"\\x7f" * 80)
    elif sys.argv[1] == "cut":
        os.truncate(file, 4096)
    elif sys.argv[1] == "remove":
        file.unlink()
    elif sys.argv[1] == "make again":  # as another process does that began at the same time
        file.rename(file.with_name("before"))
        (file.with_name("again")).write_bytes(file.with_name("before").read_bytes())
        file.with_name("again").replace(file)
def main():
    runs = mc.run(job, out="out", on_row=change)
    print(*(run.trace["loss"][-1] for run in runs))
    return 0
sys.exit(run_to_the_end(main))
"""


def played(folder: Path, change: str, mapped_from: int = 0) -> subprocess.CompletedProcess:
    """How a process ends that runs a job of two runs on data that change in the first one's second round."""
    environment = {**os.environ, "MPI_COMPRESS_CACHE": str(folder / "cache")}
    line = [sys.executable, "-c", SCRIPT, change, str(mapped_from)]
    return subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def losses(tmp_path_factory):
    """What is printed where nothing changes."""
    return played(tmp_path_factory.mktemp("whole"), "nothing", 2**40).stdout


@pytest.mark.parametrize(("change", "said", "status"), [
    ("rewrite", "was changed by another program", 2), pytest.param("remove", "is gone", 2, marks=pytest.mark.slow), ("cut", "were cut short", 3),
])  # fmt: skip
def test_mapped_data_that_change_under_a_run_end_it_and_the_same_command_makes_them_again(change, said, status, losses, tmp_path):
    found = played(tmp_path, change)
    (line,) = found.stderr.splitlines()
    assert "/cache/data/gspar-" in line
    assert said in line
    assert found.returncode == status
    again = played(tmp_path, "nothing")
    assert (again.returncode, again.stdout) == (0, losses), again.stderr


@pytest.mark.parametrize("change", ["rewrite", *(pytest.param(change, marks=pytest.mark.slow) for change in ("remove", "cut"))])
def test_a_later_run_of_a_job_reads_no_rows_that_changed_since_it_was_prepared(change, tmp_path):
    found = played(tmp_path, change, 2**40)  # rows of the first run are in memory
    (line,) = found.stderr.splitlines()
    assert "/cache/data/gspar-" in line
    assert found.returncode == 2
    assert len([*(tmp_path / "out").rglob("one-*.h5")]) == 1


@pytest.mark.parametrize("mapped_from", [0, pytest.param(2**40, marks=pytest.mark.slow)])
def test_data_that_another_process_has_made_again_are_the_same(mapped_from, losses, tmp_path):
    found = played(tmp_path, "make again", mapped_from)
    assert (found.returncode, found.stderr, found.stdout) == (0, "", losses)
