"""What `plan` says of memory, and what `run` refuses."""

import gc
import os
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from helpers.refusals import naming
from helpers.running import BIN, PATIENT

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.engine.keeper import Keeper
from mpi_compress.job.loading import load_job
from mpi_compress.preparing import memory
from mpi_compress.preparing.shapes import shape_of
from mpi_compress.problem.datasets.store import DataSet

JOB = """
data = {{ generator = "rcv1-like", samples = {samples} }}
objective.mu = 1e-3
workers.count = 4
algorithm.name = "gd"
up.compressor = "identity"
stop.rounds = 2
"""


@pytest.fixture
def job(tmp_path):
    file = tmp_path / "job.toml"
    file.write_text(JOB.format(samples=20_000))
    return file


def test_large_rows_are_read_where_they_are_cached(job, tmp_path):
    job.write_text(JOB.format(samples=115_000).replace("mu = 1e-3", 'f_star = "skip"'))
    spec, run = load_job(job).runs[0], ["run", str(job), "--out", str(tmp_path), "--quiet", "--fresh"]
    assert (main(run), tracemalloc.start(), main(run)) == (0, None, 0), "the first run converts"
    most, _ = tracemalloc.get_traced_memory()[1], tracemalloc.stop()
    assert most < memory.mapped(spec, shape_of(spec)) / 2


def test_each_rank_has_the_rows_and_each_worker_that_remembers_its_vectors(job):
    spec, d = load_job(job).runs[0], 1000
    small, mapped = DataSet(Path(), "", 1000, d, 10**5), DataSet(Path(), "", 10**7, d, 10**9)
    process = memory.PROCESS + 10 * 8 * d
    of_workers = 4 * 2 * 8 * d + 30 * 8 * d  # a gradient and a message each, and the solver
    rows = 10**5 * 12 + 1000 * 24
    assert memory.needed(spec, small) == process + rows + of_workers
    assert memory.needed(spec, small, 5, 5) == 5 * (process + rows) + of_workers
    assert memory.needed(spec, mapped) < process + of_workers + 24 * 10**7 + 1, "rows that are mapped need no memory"
    assert memory.needed(spec, mapped, 2, 4, seen=False) == pytest.approx(2 * process + 12e9 / 2, rel=0.05)
    remembers = load_job(job, {"algorithm.name": "ef21", "up.compressor": "natural"}).runs[0]
    assert memory.needed(remembers, small) - memory.needed(spec, small) == 4 * 2 * 8 * d
    sparse = load_job(job, {"algorithm.name": "cat", "up.compressor": "top-k"}).runs[0]
    assert memory.needed(spec, small) - memory.needed(sparse, small) == 4 * 1.5 * 8 * d, "messages of few coordinates, and no vector to remember"
    tables = load_job(job, {"time.compute": "1 ms", "time.rule": "ringleader", "algorithm.step": 0.1}).runs[0]
    assert memory.needed(tables, small) - memory.needed(spec, small) == 4 * 2 * 8 * d, "the master's two tables"


def test_what_cannot_fit_is_refused_unless_forced(job, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 1e7)
    for command in (["plan"], ["run", "--quiet"]):
        assert main([*command, str(job), "--out", str(tmp_path / "out")]) == 2
        assert re.search(naming(f"{job} GiB of memory --force"), capfd.readouterr().err.strip())
    assert not (tmp_path / "out").exists()
    assert main(["plan", str(job), "--force"]) == 0
    assert main(["run", str(job), "--out", str(tmp_path / "out"), "--force", "--quiet"]) == 0


def test_rows_larger_than_the_memory_are_read_in_each_pass_unless_they_cannot_be_mapped(job, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr("mpi_compress.preparing.memory.MAPPED_FROM", 0)
    spec = load_job(job).runs[0]
    monkeypatch.setattr(memory, "available", lambda: memory.needed(spec, shape_of(spec)) + 1e6)
    assert main(["run", str(job), "--out", str(tmp_path)]) == main(["plan", str(job)]) == 0
    assert "".join(capfd.readouterr()).count("0.016 GiB are read from the disk in each pass: more than the 0.0") == 2
    monkeypatch.setattr(memory, "addressable", lambda: 8e7)
    assert [main([command, str(job), "--out", str(tmp_path / "out")]) for command in ("plan", "run")] == [2, 2]
    assert capfd.readouterr().err.count("0.016 GiB of it for rows mapped from the cache, and `ulimit -v` leaves 0.075 GiB") == 2


@pytest.mark.slow
def test_three_ranks_of_one_host_are_counted_together_and_refused_once(job, tmp_path):
    spec = load_job(job).runs[0]
    needed = memory.needed(spec, shape_of(spec), 3, 3)
    script = tmp_path / "run.py"
    script.write_text(
        "import sys\nfrom mpi_compress.preparing import memory\nfrom mpi_compress.cli.main import main\n"
        "memory.available = lambda: float(sys.argv[1])\nsys.exit(main(sys.argv[2:]))\n"
    )

    def under_mpiexec(free: float) -> subprocess.CompletedProcess:
        line = [BIN / "mpiexec", "-n", "3", sys.executable, script, free, "run", job, "--out", tmp_path / "out", "--quiet"]
        return subprocess.run([str(a) for a in line], capture_output=True, text=True, timeout=PATIENT, env=os.environ)

    refused = under_mpiexec(0.9 * needed)
    assert refused.returncode == 2
    assert len([text for text in refused.stderr.splitlines() if "3 of 3 ranks on this host" in text]) == 1
    assert under_mpiexec(1.1 * needed).returncode == 0


def test_the_states_of_a_run_end_with_it(job, tmp_path):
    """Without a search for cycles: the next run of a job finds their memory free."""
    job.write_text(JOB.format(samples=200) + "\ncheckpoint.keep = false\ngrid.seed = [0, 1]\n")
    gc.collect()  # what other tests left
    gc.disable()
    try:
        mc.run(job, out=tmp_path)
        assert not [each for each in gc.get_objects() if type(each) is Keeper]
    finally:
        gc.enable()


def test_what_is_free_is_a_share_of_this_machine():
    assert 0 < memory.available() <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    asks = f"ulimit -v 2000000; {sys.executable} -c 'from mpi_compress.preparing.memory import available; print(available())'"
    assert 0 < float(subprocess.run(["bash", "-c", asks], capture_output=True, check=True).stdout) < 1024 * 2e6


def test_a_large_set_that_nobody_has_counted_is_not_guessed(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("mpi_compress.preparing.shapes.counted_in", lambda file: None)  # as of a large one
    (tmp_path / "data").write_text("1 1:1\n-1 1:2\n")
    job = tmp_path / "job.toml"
    job.write_text('[data]\npath = "data"\n[algorithm]\nname = "gd"\n[stop]\nrounds = 1\n')
    assert main(["plan", str(job), "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "  ? GiB  to do" in out
    assert "? GiB: not known before the data are parsed" in out
    assert main(["run", str(job), "--out", str(tmp_path / "out"), "--quiet"]) == 0
    capsys.readouterr()
    assert main(["plan", str(job), "--out", str(tmp_path / "out")]) == 0
    assert " GiB  done" in capsys.readouterr().out
