"""Workers whose rows hold few of d coordinates: to the bit as if they kept whole gradients, on one process and on ranks."""

import numpy as np
import pytest
from helpers.running import command

import mpi_compress as mc
from mpi_compress.problem import data_terms

JOB = """
data = { generator = "rcv1-like", samples = 400, dim = 8000 }
objective = { mu = "1e-3 L", f_star = "skip" }
workers = { count = 80 }
stop = { rounds = 5 }
[[run]]
label = "whole messages, from a random start"
start = { at = "random", scale = 1.0 }
algorithm = { name = "gd" }
up = { compressor = "identity" }
[[run]]
label = "from zero"
algorithm = { name = "cat" }
[[run]]
label = "logged now and then"
algorithm = { name = "ef21" }
up = { compressor = { name = "top-k", k = 20 } }
log = { every = 2 }
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    file = tmp_path_factory.mktemp("few") / "few.toml"
    file.write_text(JOB)
    return file


def bytes_of(runs):
    return {run.label: {name: column.tobytes() for name, column in {**run.trace, "x": run.x}.items()} for run in runs}


@pytest.fixture(scope="module")
def alone(file, tmp_path_factory):
    return bytes_of(mc.run(file, out=tmp_path_factory.mktemp("alone")))


def test_each_worker_holds_few_coordinates(file):
    assert all(f.term.holds_few for f in mc.problem(file).f_i)


def test_results_are_those_of_whole_gradients(file, alone, tmp_path, monkeypatch):
    monkeypatch.setattr(data_terms, "are_few", lambda nonzeros, dim: False)
    assert not any(f.term.holds_few for f in mc.problem(file).f_i)
    assert bytes_of(mc.run(file, out=tmp_path)) == alone


@pytest.mark.parametrize("ranks", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_results_on_ranks_have_the_same_bytes(ranks, file, alone, tmp_path):
    done = command("run", file, "--out", tmp_path, "--quiet", ranks=ranks)
    assert done.returncode == 0, done.stderr
    found = bytes_of(mc.read(result) for result in tmp_path.rglob("*.h5"))
    assert found == alone
    assert np.isfinite(np.frombuffer(found["from zero"]["loss"])).all()
