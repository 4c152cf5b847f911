"""Workers without rounds on one shared iterate."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.running import BIN, PATIENT, After, command, gone_on, wait_for

import mpi_compress as mc
from mpi_compress.core.signals import Stopped
from mpi_compress.kernels.locks import add_locked, add_shared, read_locked

JOB = """
data = {{ generator = "gspar-svm", samples = 2000, dim = 32 }}
objective = {{ loss = "hinge", lambda2 = 0.05 }}
workers = {{ count = {count}, master = "worker" }}
algorithm = {{ name = "async-sgd", step = {step} }}
log.every = {every}
stop.rounds = {rounds}
[[run]]
label = "dense"
[[run]]
label = "gspar"
up.compressor = {{ name = "gspar", kappa = 0.2 }}
"""

ADD_FROM_ALL = """
import sys
import numpy as np
from mpi4py import MPI
from mpi_compress.algorithms.papers.async_sgd import _persist
from mpi_compress.exchange.mpi import PointToPoint
from mpi_compress.kernels.locks import add_locked
from mpi_compress.kernels.locks import add_shared

exchange = PointToPoint(MPI.COMM_WORLD, MPI.COMM_WORLD.size, True)
memory = exchange.memory(48)
x, locks, y = memory.reshape(3, 16)
indices = np.arange(16, dtype=np.uint32)
add_shared(indices, np.zeros(16), 1.0, x)  # compiled before all begin
add_locked(locks, indices, np.zeros(16), 1.0, 0, 1000, y)
exchange.barrier()
retries = 0
for turn in range(int(sys.argv[1])):
    retries += add_shared(indices, np.full(16, float(exchange.n_ranks)), 2.0, x)
    if turn % 10 == 0:
        _persist(lambda at: add_locked(locks, indices, np.full(16, float(exchange.n_ranks)), 2.0, at, 1000, y), 16)
exchange.barrier()
if exchange.is_root:
    print([x.tolist(), y.tolist(), locks.tolist()])
exchange.close()
"""


def job_in(tmp_path, count=4, rounds=50, every=10, step=0.05):
    file = tmp_path / "job.toml"
    file.write_text(JOB.format(count=count, rounds=rounds, every=every, step=step))
    return file


def test_additions_are_those_of_numpy():
    x, indices, values = np.arange(6.0), np.array([1, 4], dtype=np.uint32), np.array([0.5, np.inf])
    assert add_shared(indices, values, -2.0, x) == 0
    np.testing.assert_array_equal(x, [0.0, 0.0, 2.0, 3.0, -np.inf, 5.0])


def test_a_lock_that_another_holds_stops_reads_and_writes_until_it_is_free():
    x, locks, seen = np.arange(6.0), np.zeros(6), np.full(6, np.nan)
    locks[3] = 1.0
    assert read_locked(locks, x, 0, 5, seen) == (3, 5)
    np.testing.assert_array_equal(seen, [0.0, 1.0, 2.0, np.nan, np.nan, np.nan])
    indices = np.array([1, 3, 4], dtype=np.uint32)
    assert add_locked(locks, indices, np.ones(3), 2.0, 0, 7, x) == (1, 7)
    np.testing.assert_array_equal(x, [0.0, 3.0, 2.0, 3.0, 4.0, 5.0])
    locks[3] = 0.0
    assert read_locked(locks, x, 3, 5, seen) == (6, 0)
    assert add_locked(locks, indices, np.ones(3), 2.0, 1, 7, x) == (3, 0)
    np.testing.assert_array_equal(x, [0.0, 3.0, 2.0, 5.0, 6.0, 5.0])
    np.testing.assert_array_equal(seen, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    assert not locks.any()


def test_workers_that_take_turns_do_with_locks_what_they_do_without(tmp_path):
    free = mc.run(mc.load_job(job_in(tmp_path)), out=tmp_path)
    locked = mc.run(mc.load_job(job_in(tmp_path), {"algorithm.locked": True}), out=tmp_path)
    for one, other in zip(free, locked, strict=True):
        np.testing.assert_array_equal(one.x, other.x)
        assert other.trace["retries"][-1] == 0


def test_no_addition_of_any_rank_is_lost(tmp_path):
    """Whole numbers add up exactly, in any order; under locks, too, which are free in the end."""
    script = tmp_path / "add.py"
    script.write_text(ADD_FROM_ALL)
    line = [BIN / "mpiexec", "-n", "4", sys.executable, script, "20000"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENT, check=True)
    assert json.loads(done.stdout) == [[20000 * 4 * 2.0 * 4] * 16, [2000 * 4 * 2.0 * 4] * 16, [0.0] * 16]


def test_in_one_process_workers_take_turns(tmp_path):
    """And so a run can be repeated."""
    dense = mc.run(mc.load_job(job_in(tmp_path)), out=tmp_path)[0]
    again = mc.run(mc.load_job(job_in(tmp_path)), out=tmp_path / "again")[0]
    np.testing.assert_array_equal(dense.x, again.x)
    assert dense.trace["round"].tolist() == [0, 10, 20, 30, 40, 50]
    assert dense.trace["updates"].tolist() == [0, 40, 80, 120, 160, 200]
    assert dense.trace["coordinate_writes"][-1] == 200 * 32
    assert dense.trace["retries"][-1] == 0
    assert dense.trace["wire_bits_up"][-1] == 0


@pytest.mark.parametrize("locked", ["false", pytest.param("true", marks=pytest.mark.slow)])
def test_on_several_ranks_every_update_counts(locked, tmp_path):
    job = job_in(tmp_path, count=8, rounds=200, every=50)
    assert command("run", job, "--out", tmp_path, "--quiet", "--set", f"algorithm.locked={locked}", ranks=3).returncode == 0
    for label in ("dense", "gspar"):
        run = mc.read(next((tmp_path / "job").glob(f"{label}-*.h5")))
        wanted = 8 * run.trace["round"]
        assert np.all(run.trace["updates"] >= wanted)
        assert np.all(run.trace["updates"] <= wanted + 3 * (1 + np.arange(len(wanted))))
        assert run.trace["loss"][-1] < run.trace["loss"][0]
        share = run.trace["coordinate_writes"][-1] / (32 * run.trace["updates"][-1])
        assert share == 1 if label == "dense" else share < 0.3


@pytest.mark.parametrize("compressor", [{"name": "gspar", "kappa": 0.2}, {"name": "unisp", "kappa": 0.2}, {"name": "random-k", "k": 6}, {"name": "qsgd", "levels": 4}], ids=lambda c: c["name"])  # fmt: skip
def test_numbers_drawn_beforehand_serve_as_well(compressor, tmp_path):
    """A pool changes what is drawn, not how much of it, nor how far the run comes: in the mean over the later rows."""
    file = job_in(tmp_path, rounds=400, step=0.02)
    runs = [
        mc.run(mc.load_job(file, {"up.compressor": compressor, **pool}, index=1), out=tmp_path)[0]
        for pool in ({}, {"algorithm.pool": 5000})
    ]
    assert not np.array_equal(runs[0].x, runs[1].x)
    lost, writes = ([r.trace[name] for r in runs] for name in ("loss", "coordinate_writes"))
    assert lost[1][20:].mean() == pytest.approx(lost[0][20:].mean(), rel=0.05)
    assert writes[1][-1] == pytest.approx(writes[0][-1], rel=0.05)


@pytest.mark.slow
def test_a_worker_that_is_killed_ends_the_job_and_what_was_logged_is_kept(tmp_path):
    job = job_in(tmp_path, count=4, rounds=100_000_000, every=20)
    with job.open("a") as file:
        file.write("[checkpoint]\nevery = 100\n")
    line = ["run", job, "--out", tmp_path, "--only", "gspar"]
    program = subprocess.Popen(
        [str(a) for a in (BIN / "mpiexec", "-n", "4", BIN / "mpi-compress", *line)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    wait_for(lambda: list(tmp_path.rglob("*.ckpt")))
    ranks = {rank_of(pid): pid for pid in subprocess.run(["pgrep", "-f", str(job)], capture_output=True, text=True).stdout.split()}
    os.kill(int(ranks["2"]), signal.SIGKILL)
    said = program.communicate(timeout=PATIENT)[0]
    assert program.returncode != 0
    assert "Killed (signal 9)" in said
    part = next(tmp_path.rglob("*.part"))
    kept = mc.read(part).trace["round"]
    assert kept[-1] >= 100
    plan = command("plan", job, "--out", tmp_path).stdout
    assert f"broken off (round {kept[-1]}" in plan
    again = command(*line, "--time-limit", "5", ranks=4)
    assert again.returncode == 75
    (from_round,) = gone_on(again.stderr)
    assert from_round % 100 == 0
    assert mc.read(part).trace["round"][-1] >= from_round >= kept[-1] - 100


FAILING = """
from dataclasses import dataclass
import mpi_compress as mc
from mpi_compress.core.signals import Stopped
from mpi_compress.messages.compressors.base import compressors

@compressors.register("failing")
@dataclass(frozen=True)
class Failing(mc.Compressor):
    error: str = "OverflowError"
    paper = "none"
    makes = mc.Dense

    def compress(self, v, t):
        if t.k >= 20:  # of a worker's own: all of them, as a rank without a core may make no update for long
            raise {"OverflowError": OverflowError, "RuntimeError": RuntimeError}[self.error]("no more")
        return mc.Dense(v.copy())
"""


def test_a_rank_that_fails_ends_the_others(tmp_path):
    (tmp_path / "failing.py").write_text(FAILING)
    job = job_in(tmp_path, rounds=100_000_000)
    job.write_text('plugins = ["failing"]\n' + job.read_text().replace('"gspar", kappa = 0.2', '"failing", error = "RuntimeError"'))
    done = command("run", job, "--out", tmp_path, "--only", "gspar", "--quiet", ranks=2)
    assert done.returncode == 3
    assert "no more" in done.stderr


@pytest.mark.parametrize("ranks", [None, pytest.param(2, marks=pytest.mark.slow)])
def test_what_cannot_be_compressed_has_diverged(ranks, tmp_path):
    (tmp_path / "failing.py").write_text(FAILING)
    job = job_in(tmp_path, rounds=1000)
    job.write_text('plugins = ["failing"]\n' + job.read_text().replace('"gspar", kappa = 0.2', '"failing"'))
    done = command("run", job, "--out", tmp_path, "--only", "gspar", "--quiet", ranks=ranks)
    assert done.returncode == 3, done.stderr
    (file,) = tmp_path.rglob("gspar-*.h5")
    assert mc.read(file).status == "diverged"
    assert re.search(r"worker \d: no more$", mc.read(file).attrs["reason"])


def test_with_numbers_drawn_beforehand_it_goes_on_where_it_was(tmp_path):
    job = job_in(tmp_path, rounds=60)
    settings = {"algorithm.pool": 999, "checkpoint.every": 7}
    whole = mc.run(mc.load_job(job, settings, "gspar"), out=tmp_path / "whole")[0]
    with pytest.raises(Stopped):
        mc.run(mc.load_job(job, settings, "gspar"), out=tmp_path / "parts", interrupts=After(3))
    parts = mc.run(mc.load_job(job, settings, "gspar"), out=tmp_path / "parts")[0]
    np.testing.assert_array_equal(whole.trace["loss"], parts.trace["loss"])
    np.testing.assert_array_equal(whole.x, parts.x)


def rank_of(pid):
    """The rank of a process that mpiexec started; None of another."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    return next((v.split(b"=")[1].decode() for v in variables if v.startswith(b"PMI_RANK=")), None)


def test_what_it_cannot_do_is_refused(tmp_path):
    job = job_in(tmp_path)
    for key, value, says in (
        ("algorithm.pool", 100, "at least 2d"), ("algorithm.regularizer", "master", "the whole of ∇f_i"),
        ("stop.wire_bits_up", 1000, r"stop\.wire_bits_up: async-sgd .* counts no bits"),
    ):  # fmt: skip
        with pytest.raises(mc.UserError, match=says):
            mc.run(mc.load_job(job, {key: value}), out=tmp_path)


@pytest.mark.slow
def test_sixteen_workers_come_as_far_as_in_rounds(tmp_path):
    """To within 1 %, with steps that fall."""
    step = '{ form = "1/t", a = 2.0, b = 40 }'
    job = job_in(tmp_path, count=16, rounds=4000, every=500, step=step)
    assert command("run", job, "--out", tmp_path, "--quiet", ranks=16, timeout=500).returncode == 0
    sync = tmp_path / "sync.toml"
    sync.write_text(job.read_text().replace("async-sgd", "sgd").replace("step =", "batch = 1, step ="))
    for run in mc.run(mc.load_job(sync), out=tmp_path):
        other = mc.read(next((tmp_path / "job").glob(f"{run.label}-*.h5")))
        assert other.trace["loss"][-1] <= 1.01 * run.trace["loss"][-1]
