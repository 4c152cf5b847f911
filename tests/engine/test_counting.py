"""A counted column of the trace is a row of `results.columns` and a field of `engine.counting.Counts`, and nothing else."""

import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from helpers.running import BIN, PATIENT

import mpi_compress as mc
from mpi_compress.engine.counting import Counters, Counts
from mpi_compress.results.columns import COLUMNS, named

PROGRAM = Path(__file__).parents[1] / "helpers" / "with_a_column.py"
JOB = """
seed = 1
data = { generator = "gspar", samples = 80, dim = 20 }
workers.count = 40
stop.rounds = 6
log = { every = 2, count = ["values+indices"] }
[[run]]
label = "top-3"
algorithm = { name = "gd" }
up = { compressor = { name = "top-k", k = 3 } }
"""


@pytest.mark.parametrize(("ranks", "settings"), [
    (None, ()), (3, ("exchange='p2p'",)), pytest.param(3, ("exchange='allgather'",), marks=pytest.mark.slow),
], ids=lambda given: str(given))  # fmt: skip
def test_a_column_of_ones_own_takes_three_lines_and_is_counted_on_every_layout(ranks, settings, tmp_path):
    job = tmp_path / "job.toml"
    job.write_text(JOB)
    launcher = [BIN / "mpiexec", "-n", ranks] if ranks else []
    line = [*launcher, sys.executable, PROGRAM, "run", job, "--quiet", "--out", tmp_path]
    line += [part for each in settings for part in ("--set", f"workers.{each}")]
    done = subprocess.run([str(part) for part in line], capture_output=True, text=True, timeout=PATIENT)
    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.rglob("*.h5")
    run = mc.read(file)
    counted = run.trace["bytes_up"]
    np.testing.assert_array_equal(8 * counted + 32 * 40 * run.trace["round"], run.trace["wire_bits_up"])
    assert counted[-1] > 0
    assert counted.dtype == np.int64
    np.testing.assert_array_equal(run.workers["bytes_up"].sum(axis=1), counted)


def test_every_counted_column_has_a_field_of_its_name():
    counters = Counters.begun(3)
    assert list(counters.trace) == named("counter")
    assert list(counters.workers) == [c.name for c in COLUMNS if c.since == "counter" and c.workers]


def test_counts_add_up():
    values = {f.name: np.array([i + 1, 2**50]) for i, f in enumerate(fields(Counts))}
    total, of_all = Counts.zeros(2), Counts.zeros(1)
    for _ in range(2):
        total.add(Counts(**values))
        of_all.add(Counts(**values), times=3)
    assert {name: held.tolist() for name, held in vars(total).items()} == {name: [2 * v[0], 2**51] for name, v in values.items()}
    assert {name: held.tolist() for name, held in vars(of_all).items()} == {name: [6 * v.sum()] for name, v in values.items()}
