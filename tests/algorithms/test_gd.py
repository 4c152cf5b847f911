"""Gradient descent and sparsified descent against plain NumPy loops."""

import lzma

import numpy as np
import pytest
from helpers.plays import play, problem
from helpers.running import run_of
from sklearn.datasets import load_svmlight_file

import mpi_compress as mc
from mpi_compress.algorithms.estimators.gd import GD
from mpi_compress.job.loading import parse_job


def plain(samples, labels, mu, step, rounds, shards=1, k=None):
    """x ← x − γ (1/n) Σ Q(∇f_i(x)), and f before each round, written out."""
    N, d = samples.shape
    x, losses = np.zeros(d), []
    while True:
        margins = labels * (samples @ x)
        losses.append(np.logaddexp(0, -margins).mean() + mu / 2 * (x @ x))
        if len(losses) > rounds:
            return np.array(losses), x
        mean = np.zeros(d)
        for i in range(shards):
            rows = slice(i * N // shards, (i + 1) * N // shards)
            slopes = -labels[rows] / (1 + np.exp(margins[rows]))
            g = shards / N * (samples[rows].T @ slopes) + mu * x
            if k is not None:
                g[np.argsort(-np.abs(g), kind="stable")[k:]] = 0.0
            mean += g
        x = x - step * mean / shards


@pytest.mark.parametrize("name", [pytest.param("a9a", marks=pytest.mark.slow), "madelon"])
@pytest.mark.parametrize("count", [1, 4])
def test_loss_of_gradient_descent_equals_a_plain_loop(name, count, real_data, tmp_path):
    run = run_of(tmp_path, {"name": "gd"}, None, {"name": name}, count, objective={"mu": "1e-4 L"})
    with lzma.open(real_data / f"{name}.xz") as text:
        samples, labels = load_svmlight_file(text, n_features=run.attrs["dim"])
    losses, x = plain(samples.toarray(), labels, run.attrs["mu"], 1 / run.attrs["L"], 200, count)
    assert np.max(np.abs(run.trace["loss"] / losses - 1)) < 1e-12
    assert np.allclose(run.x, x, rtol=1e-9, atol=1e-13 * np.abs(x).max())


@pytest.mark.parametrize("k", [1, 7, 60])
def test_sparsified_descent_equals_a_plain_loop(k, tmp_path):
    data = {"generator": "gspar", "samples": 90, "dim": 60, "seed": 5}
    up = {"compressor": {"name": "top-k", "k": k}}
    run = run_of(tmp_path, {"name": "gd"}, up, data, 4, 100, objective={"mu": "1e-4 L"})
    samples, labels = mc.datasets.generators["gspar"](samples=90, dim=60, seed=5).make()
    losses, x = plain(samples, labels, run.attrs["mu"], 1 / run.attrs["L"], 100, 4, k)
    assert np.allclose(run.trace["loss"], losses, rtol=1e-12)
    assert np.allclose(run.x, x, rtol=1e-9, atol=1e-12)
    assert run.trace["elements_up"].tolist() == [4 * k * r for r in range(101)]


def test_with_the_identity_messages_cost_what_they_hold(tmp_path):
    data = {"generator": "gspar", "samples": 30, "dim": 50}
    run = run_of(tmp_path, {"name": "gd"}, None, data, 3, 5)
    assert run.trace["wire_bits_up"].tolist() == [r * 3 * 8 * (4 + 50 * 8) for r in range(6)]
    assert run.trace["paper_bits_up"].tolist() == [r * 3 * 50 * 64 for r in range(6)]
    assert run.trace["wire_bits_down"].tolist() == [r * 3 * 8 * (4 + 1 + 50 * 8) for r in range(6)]
    assert run.trace["paper_bits_down"].tolist() == [r * 3 * 50 * 64 for r in range(6)]
    assert run.trace["cost_up"].tolist() == run.trace["paper_bits_up"].tolist()
    assert run.trace["cost_down"].tolist() == run.trace["paper_bits_down"].tolist()
    assert run.trace["epoch"].tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("bits", [32, 64])
def test_wire_bits_of_top_k_are_at_most_16_bytes_a_message_above_paper_bits(bits, tmp_path):
    data = {"generator": "gspar", "samples": 40, "dim": 333}
    up = {"compressor": {"name": "top-k", "k": 100}, "codec": {"name": "fixed", "float": bits}}
    run = run_of(tmp_path, {"name": "gd"}, up, data, 2, 4)
    assert run.trace["paper_bits_up"][-1] == 4 * 2 * 100 * (9 + bits)
    assert run.trace["wire_bits_up"][-1] - run.trace["paper_bits_up"][-1] <= 4 * 2 * 16 * 8


def test_regulariser_at_the_master_is_the_same_method(tmp_path):
    data = {"generator": "gspar", "samples": 80, "dim": 30}
    runs = [run_of(tmp_path / where, {"name": "gd", "regularizer": where}, None, data, 3, 50) for where in ("worker", "master")]
    assert np.allclose(runs[0].trace["loss"], runs[1].trace["loss"], rtol=1e-12)
    assert np.allclose(runs[0].trace["grad_norm"], runs[1].trace["grad_norm"], rtol=1e-9)


def test_a_step_may_name_what_the_compressor_states(tmp_path):
    """Random-k keeps k of d = 512 coordinates, d/k times as large: ω = d/k − 1 = 3."""
    up = {"compressor": {"name": "random-k", "k": 128}}
    data = {"generator": "gspar", "samples": 60, "dim": 512}
    named, written = (run_of(tmp_path, {"name": "gd", "step": step}, up, data, 1, 5) for step in ("1/(L*(1+omega))", "1/(4*L)"))
    assert np.array_equal(named.trace["loss"], written.trace["loss"])


@pytest.mark.parametrize("more", [{"objective": {"mu": "1e-2 L", "regularizer": "master"}}, {"log": {"theory": True}}])
def test_what_diverges_beyond_the_squares_of_floats_has_diverged(more, tmp_path):
    data = {"generator": "gspar", "samples": 40, "dim": 10}
    run = run_of(tmp_path, {"name": "gd", "step": 1e160}, None, data, 2, **more)
    assert run.status == "diverged"


@pytest.mark.parametrize(("bits", "able"), [(16, '"bf16", 32 or 64'), ("bf16", "64"), (32, "64")])
def test_a_value_that_overflows_short_floats_ends_the_run_as_diverged(bits, able, tmp_path):
    tables = {
        "data": {"generator": "gspar", "samples": 40, "dim": 20}, "objective": {"mu": "1e-3 L", "loss": "least-squares"},
        "workers": {"count": 2}, "stop": {"rounds": 500}, "algorithm": {"name": "gd", "step": "1e3/L"},
        "up": {"compressor": "identity", "codec": {"name": "dense", "float": bits}},
    }  # fmt: skip
    (run,) = mc.run(parse_job(tables, "test", tmp_path, {}), out=tmp_path)
    assert run.status == "diverged"
    assert "worker 0: a value of magnitude" in run.attrs["reason"]
    assert f"use float = {able}" in run.attrs["reason"]
    losses = run.trace["loss"]
    assert f"; the loss had risen from {losses[0]:.3g} to {losses[-1]:.3g}: a smaller step size may help" in run.attrs["reason"]
    assert np.isfinite(run.trace["loss"]).all()


@pytest.mark.parametrize("algorithm", ["dqgd", "gd"])
def test_what_becomes_of_a_run_does_not_depend_on_how_often_it_is_logged(algorithm, tmp_path):
    tables = {
        "data": {"generator": "gspar", "samples": 40, "dim": 20}, "objective": {"mu": "1e-2 L", "loss": "least-squares"},
        "workers": {"count": 2}, "stop": {"rounds": 500},
        "algorithm": {"name": algorithm, "step": "30/L"},
    }  # fmt: skip
    found = [
        mc.run(parse_job({**tables, "log": {"every": every}}, "test", tmp_path, {}), out=tmp_path / str(every))[0]
        for every in (1, 100, 1000)
    ]
    assert {run.status for run in found} == {"diverged"}
    for run in found:
        assert "a smaller step size may help" in run.attrs["reason"]
    ends = [run.trace["round"][-1] for run in found if "update" in run.attrs["reason"]]
    assert len(set(ends)) <= 1


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OverflowError("line one\n line\0two"), "worker 0: line one line two"),
        (OverflowError(34, "Numerical result out of range"), "worker 0: Numerical result out of range"),
        (OverflowError(), "worker 0: OverflowError without a text"),
        (OverflowError("long " * 100), "[...]"),
    ],
)
def test_the_reason_of_a_refusal_is_one_short_line(error, told):
    class Refusing(GD):
        name = "refusing"

        def worker_sends(self, node, worker, f, t):
            raise error

    played = play(problem(), Refusing(), {"name": "identity"}, rounds=3)
    assert played.reason.startswith("the update of round 0 is not finite: worker 0: ")
    assert played.reason.endswith(told)
    assert len(played.reason) < 400


@pytest.mark.parametrize(
    ("stop", "column"), [("loss", "loss"), ("suboptimality", "suboptimality"), ("wire_bits_up", "wire_bits_up")]
)
def test_stops_at_the_first_round_that_meets(stop, column, tmp_path):
    data = {"generator": "gspar", "samples": 80, "dim": 30}
    whole = run_of(tmp_path, {"name": "gd"}, None, data, 3, 60).trace[column]
    wanted = float(whole[30])
    met = whole >= wanted if stop == "wire_bits_up" else whole <= wanted
    run = run_of(tmp_path, {"name": "gd"}, None, data, 3, stop={"rounds": 60, stop: wanted})
    assert run.trace["round"][-1] == int(np.argmax(met))
    assert run.status == "complete"
