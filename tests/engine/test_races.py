"""Trials that race to a target: stopped on the way, and on several ranks, they find what one process finds at one go."""

import json

import pytest
from helpers.layouts import Layout, assert_equal, play, results
from helpers.running import After

import mpi_compress as mc
from mpi_compress.core.signals import Stopped

JOB = """
data = { generator = "gspar", samples = 40, dim = 12 }
objective.mu = "1e-1 L"
workers.count = 3
algorithm = { name = "ef" }
up.compressor = { name = "top-k", k = 2 }
stop.rounds = 48
checkpoint.every = 3
tune = { parameter = "algorithm.step", values = "2^-5..2^1 theory", to = { squared_grad_norm = 1e-4 } }
grid.seed = [0, 1]
[[run]]
label = "EF"
"""


@pytest.fixture(scope="module")
def at_one_go(tmp_path_factory):
    """The job's file, and its results."""
    folder = tmp_path_factory.mktemp("tuning")
    (folder / "job.toml").write_text(JOB)
    return folder / "job.toml", mc.run(folder / "job.toml", out=folder)


@pytest.mark.slow
def test_a_search_that_is_stopped_again_and_again_finds_the_same_value(at_one_go, tmp_path):
    file, wanted = at_one_go
    for stops in range(200):  # noqa: B007
        try:
            runs = mc.run(file, out=tmp_path, interrupts=After(60))
            break
        except Stopped:
            continue
    assert stops > 3, "it was stopped on the way"
    for one, other in zip(wanted, runs, strict=True):
        assert one.tuned == other.tuned
        assert_equal(one.file, other.file)
    names = {file.name for file in (tmp_path / "job" / "tuning").iterdir()}
    assert names == {file.name for file in (file.parent / "job" / "tuning").iterdir()}


@pytest.mark.slow
def test_ranks_find_the_value_of_one_process(at_one_go, tmp_path):
    file, wanted = at_one_go
    assert play([file], tmp_path, Layout(2)) == {file: 0}
    for (job, label), result in results(tmp_path).items():
        assert (job, label) == ("job", "EF")
        (same,) = [run for run in wanted if run.attrs["run_id"] == mc.read(result).attrs["run_id"]]
        assert mc.read(result).tuned == same.tuned
        assert_equal(same.file, result)


def test_one_run_of_several_seeds_alone_is_tuned_over_all_of_them(at_one_go, tmp_path):
    """As a task of an array plays it: its id and its value are those of the whole job."""
    file, wanted = at_one_go
    (alone,) = mc.run(mc.load_job(file, index=1), out=tmp_path)
    assert (alone.attrs["run_id"], json.dumps(alone.tuned)) == (wanted[1].attrs["run_id"], json.dumps(wanted[1].tuned))
    assert alone.tuned["seeds"] == [0, 1]


@pytest.mark.parametrize(("key", "value"), [("cost_up", 2000.0), ("wire_bits_up", 2000)])
def test_a_run_ends_in_the_round_in_which_its_budget_is_spent(key, value, tmp_path):
    """Also in a round that is not logged otherwise."""
    job = {"name": "job", "data": {"generator": "gspar", "samples": 40, "dim": 12}, "workers": {"count": 2}, "log": {"every": 7},
           "algorithm": {"name": "gd"}, "stop": {key: value, "rounds": 1000}}  # fmt: skip
    (run,) = mc.run(job, out=tmp_path)
    spent, rounds = run.trace[key][-1], run.trace["round"][-1]
    assert 0 < rounds < 1000
    assert spent >= value > spent * (rounds - 1) / rounds, "every round sends the same"
    assert run.ended_by == f"{key} ≥ 2000"


def test_a_squared_norm_is_the_level_of_its_root(tmp_path):
    job = {"name": "job", "data": {"generator": "gspar", "samples": 40, "dim": 12}, "workers": {"count": 2}, "objective": {"mu": 0.1},
           "algorithm": {"name": "gd"}}  # fmt: skip
    (squared,) = mc.run({**job, "stop": {"rounds": 500, "squared_grad_norm": 1e-6}}, out=tmp_path)
    (root,) = mc.run({**job, "stop": {"rounds": 500, "grad_norm": 1e-3}}, out=tmp_path)
    assert squared.trace["round"][-1] == root.trace["round"][-1] < 500
    assert squared.column("squared_grad_norm")[-1] <= 1e-6 < squared.column("squared_grad_norm")[-2]
    assert squared.ended_by == "squared_grad_norm ≤ 1e-06"
