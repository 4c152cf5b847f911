"""What `plan` says of memory, and what `run` refuses."""

import os
import re
import subprocess
import sys
import tracemalloc

import pytest
from helpers.refusals import naming
from helpers.running import BIN, PATIENT

from mpi_compress.cli.main import main
from mpi_compress.job.loading import load_job
from mpi_compress.preparing import memory_needs as footprint
from mpi_compress.preparing.shapes import Shape, shape_of

JOB = """
data = {{ generator = "rcv1-like", samples = {samples} }}
objective.mu = 1e-3
workers.count = 4
algorithm.name = "gd"
up.compressor = "identity"
stop.rounds = 2
"""

LONG = """
data = { generator = "url-like", samples = 2000, dim = 3_200_000 }
objective = { mu = "1e-4 L", f_star = "skip" }
workers.count = 12
stop.rounds = 3
"""


@pytest.fixture
def job(tmp_path):
    file = tmp_path / "job.toml"
    file.write_text(JOB.format(samples=20_000))
    return file


def measured(job, out):
    """The most memory, bytes, that a run of this job in one process takes; the first run compiles, which takes memory of its own."""
    script = out / "measured.py"
    script.write_text(
        "import re, resource, sys\n"
        "from mpi_compress.cli.main import main\n"
        "assert main(sys.argv[1:]) == 0\n"
        "if sys.platform == 'linux':  # what getrusage says is never less than what the process that started this one had\n"
        "    print(1024 * int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]))\n"
        "else:\n"
        "    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    line = [sys.executable, script, "run", job, "--out", out / "out", "--quiet"]
    subprocess.run(line, check=True, capture_output=True, timeout=PATIENT)
    return int(subprocess.run([*line, "--fresh"], check=True, capture_output=True, text=True, timeout=PATIENT).stdout)


def told(job):
    """The memory, bytes, of a job's run in one process, as `plan` estimates it."""
    spec = load_job(job).runs[0]
    return footprint.PROCESS + footprint.needs(spec, shape_of(spec), 1)[0]


@pytest.mark.slow
def test_plan_prints_what_a_run_then_needs(job, tmp_path):
    job.write_text(JOB.format(samples=100_000))
    assert main(["plan", str(job), "--out", str(tmp_path)]) == 0
    assert 0.5 * told(job) <= measured(job, tmp_path) <= 1.1 * told(job)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "compressor"), [("gd", ""), ("cat", ""), ("aiade", ""), ("ef21", "top-k"), ("diana", "random-k")])
def test_where_vectors_are_long_plan_is_right_within_a_third(method, compressor, tmp_path):
    job = tmp_path / "long.toml"
    up = f'[up]\ncompressor = {{ name = "{compressor}", k = "1%" }}\n' if compressor else ""
    job.write_text(f'{LONG}[algorithm]\nname = "{method}"\n{up}')
    assert told(job) / 1.3 <= measured(job, tmp_path) <= 1.1 * told(job)


def test_large_rows_are_read_where_they_are_cached(job, tmp_path):
    job.write_text(JOB.format(samples=115_000).replace("mu = 1e-3", 'f_star = "skip"'))
    spec, run = load_job(job).runs[0], ["run", str(job), "--out", str(tmp_path), "--quiet", "--fresh"]
    assert (main(run), tracemalloc.start(), main(run)) == (0, None, 0), "the first run converts"
    most, _ = tracemalloc.get_traced_memory()[1], tracemalloc.stop()
    assert most < shape_of(spec).mapped(spec) / 2


def test_ranks_share_the_rows_and_the_first_one_solves(job):
    spec = load_job(job).runs[0]
    shape = Shape(10**7, 1000, 10**9)
    alone, spread = footprint.needs(spec, shape, 1)[0], footprint.needs(spec, shape, 5)
    assert alone == pytest.approx(12e9, rel=0.1)
    assert spread[0] == pytest.approx(alone, rel=0.1)  # λmax and x* are computed on the whole set
    assert spread[1:] == [pytest.approx(alone / 4, rel=0.05)] * 4
    assert footprint.needs(spec, shape, 5, solve=False)[0] < alone / 100


def test_what_cannot_fit_is_refused_unless_forced(job, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(footprint, "available", lambda: 1e7)
    for command in (["plan"], ["run", "--quiet"]):
        assert main([*command, str(job), "--out", str(tmp_path / "out")]) == 2
        assert re.search(naming(f"{job} GiB of memory --force"), capfd.readouterr().err.strip())
    assert not (tmp_path / "out").exists()
    each = footprint.needs(load_job(job).runs[0], shape_of(load_job(job).runs[0]), 5)
    monkeypatch.setattr(footprint, "available", lambda: (min(each) + max(each)) / 2)
    assert main(["plan", str(job)]) == 2, "the rank that solves needs most"
    assert main(["plan", str(job), "--force"]) == 0
    assert main(["run", str(job), "--out", str(tmp_path / "out"), "--force", "--quiet"]) == 0


def test_rows_larger_than_the_memory_are_read_in_each_pass_unless_they_cannot_be_mapped(job, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr("mpi_compress.preparing.shapes.MAPPED_FROM", 0)
    spec = load_job(job).runs[0]
    monkeypatch.setattr(footprint, "available", lambda: footprint.needs(spec, shape_of(spec), 1, resident=True)[0] + 1e6)
    assert main(["run", str(job), "--out", str(tmp_path)]) == main(["plan", str(job)]) == 0
    assert "".join(capfd.readouterr()).count("0.016 GiB are read from the disk in each pass: more than the 0.0") == 2
    monkeypatch.setattr(footprint, "addressable", lambda: 8e7)
    assert [main([command, str(job), "--out", str(tmp_path / "out")]) for command in ("plan", "run")] == [2, 2]
    assert capfd.readouterr().err.count("0.016 GiB of it for rows mapped from the cache, and `ulimit -v` leaves 0.075 GiB") == 2


@pytest.mark.slow
def test_three_ranks_of_one_host_are_counted_together_and_refused_once(job, tmp_path):
    spec = load_job(job).runs[0]
    needs = footprint.needs(spec, shape_of(spec), 3)
    script = tmp_path / "run.py"
    script.write_text(
        "import sys\nfrom mpi_compress.preparing import memory_needs as footprint\nfrom mpi_compress.cli.main import main\n"
        "footprint.available = lambda: float(sys.argv[1])\nsys.exit(main(sys.argv[2:]))\n"
    )

    def under_mpiexec(free: float) -> subprocess.CompletedProcess:
        line = [BIN / "mpiexec", "-n", "3", sys.executable, script, free, "run", job, "--out", tmp_path / "out", "--quiet"]
        return subprocess.run([str(a) for a in line], capture_output=True, text=True, timeout=PATIENT, env=os.environ)

    refused = under_mpiexec(0.9 * sum(needs))
    assert refused.returncode == 2
    assert len([text for text in refused.stderr.splitlines() if "3 of 3 ranks on this host" in text]) == 1
    assert under_mpiexec(1.1 * sum(needs)).returncode == 0


def test_what_is_free_is_a_share_of_this_machine():
    assert 0 < footprint.available() <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    asks = f"ulimit -v 2000000; {sys.executable} -c 'from mpi_compress.preparing.memory_needs import available; print(available())'"
    assert 0 < float(subprocess.run(["bash", "-c", asks], capture_output=True, check=True).stdout) < 1024 * 2e6


def test_a_set_that_nobody_has_counted_is_not_guessed(tmp_path, capsys):
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
