"""[log] evaluate: f and ∇f at logged rounds from a few rows of each worker; scores of test sets that no worker holds."""

import numpy as np
import pytest

import mpi_compress as mc
from mpi_compress.core.errors import UserError
from mpi_compress.problem.data_terms import ModelRows
from mpi_compress.problem.datasets.store import open_data
from mpi_compress.problem.metrics import ProblemView, metrics
from mpi_compress.problem.metrics.base import HeldOut

LINES = [f"{j % 3} " + " ".join(f"{i + 1}:{np.sin(1 + j * (i + 1)):.3f}" for i in range(4)) for j in range(31)]


def job(folder, **tables):
    (folder / "train").write_text("\n".join(LINES) + "\n")
    (folder / "test").write_text("\n".join(LINES[:9]) + "\n")
    return {
        "name": "sampled",
        "data": {"path": str(folder / "train"), "test": str(folder / "test")},
        "objective": {"model": {"name": "softmax", "bias": True}, "f_star": "skip", "mu": 1e-2},
        "workers": {"count": 3},
        "algorithm": {"name": "ef", "batch": 2, "step": 0.2},
        "up": {"compressor": {"name": "top-k", "k": 3}},
        "stop": {"rounds": 4},
        "log": {"evaluate": 4},
        **tables,
    }


def by_hand(rows, x, chosen):
    a, y, X, b = rows.dense()[chosen], rows.labels[chosen].astype(int), x[:12].reshape(4, 3), x[12:]
    scores = a @ X + b
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    slopes = (p - np.eye(3)[y]) / len(y)
    return -np.log(p[np.arange(len(y)), y]).mean(), np.concatenate([(a.T @ slopes).ravel(), slopes.sum(axis=0)])


def test_a_row_is_f_and_its_gradient_on_rows_that_are_evenly_spread(tmp_path):
    (run,) = mc.run(job(tmp_path), out=tmp_path)
    spec = mc.load_job(job(tmp_path)).runs[0]
    data = open_data(*spec.source)
    values, gradients = [], []
    for shard in data.shards(range(3), 3):
        n = len(shard)
        value, gradient = by_hand(shard, run.x, [j * n // 4 for j in range(4)])
        values.append(3 * n / 31 * value)
        gradients.append(3 * n / 31 * gradient)
    assert run.trace["loss"][-1] == pytest.approx(np.mean(values) + 0.005 * run.x @ run.x, rel=1e-12)
    assert run.trace["grad_norm"][-1] == pytest.approx(np.linalg.norm(np.mean(gradients, axis=0) + 0.01 * run.x), rel=1e-12)
    assert np.isnan(run.trace["suboptimality"]).all()
    assert run.attrs["evaluate"] == 4


def test_what_is_logged_changes_no_round_and_as_many_rows_as_there_are_are_all(tmp_path):
    runs = [
        mc.run(job(tmp_path, log=log), out=tmp_path / str(i))[0] for i, log in enumerate(({}, {"evaluate": 4}, {"evaluate": 99}))
    ]
    assert runs[0].x.tobytes() == runs[1].x.tobytes() == runs[2].x.tobytes()
    assert runs[0].trace["loss"].tolist() == runs[2].trace["loss"].tolist() != runs[1].trace["loss"].tolist()


def test_a_logged_row_costs_no_full_gradient(tmp_path, monkeypatch):
    seen = []
    compute = ModelRows.evaluate
    monkeypatch.setattr(ModelRows, "evaluate", lambda term, *a: seen.append(len(term.rows)) or compute(term, *a))
    mc.run(job(tmp_path), out=tmp_path)
    logged = 3 * 5
    assert seen.count(4) == logged
    assert all(rows <= 4 for rows in seen)  # 2 when kernels are compiled


def test_samples_do_not_go_with_what_needs_all_rows(tmp_path):
    with pytest.raises(UserError, match=r"suboptimality is not known of f at some samples: leave log\.evaluate = 4 out"):
        mc.load_job(job(tmp_path, stop={"rounds": 3, "suboptimality": 0.1}))
    with pytest.raises(UserError, match="leave evaluate out"):
        mc.load_job(job(tmp_path, log={"evaluate": 4, "theory": True}))
    with pytest.raises(UserError, match="at least 1 sample"):
        mc.load_job(job(tmp_path, log={"evaluate": 0}))


def test_perplexity_is_exp_of_the_test_loss_and_test_rows_are_the_first(tmp_path):
    tables = job(tmp_path, log={"metrics": ["perplexity"]})
    (run,) = mc.run(tables, out=tmp_path)
    assert run.trace["perplexity"][0] == pytest.approx(3.0)
    assert run.trace["perplexity"].tolist() == np.exp(run.trace["test_loss"]).tolist()
    (few,) = mc.run({**tables, "data": {**tables["data"], "test_rows": 4}}, out=tmp_path / "few")
    spec = mc.load_job(tables).runs[0]
    rows = open_data(*spec.source).read(0, 31)
    assert few.trace["test_loss"][-1] == pytest.approx(by_hand(rows, few.x, range(4))[0], rel=1e-12)
    with pytest.raises(UserError, match="of a test set, and the job has none"):
        mc.run({**tables, "data": {"path": tables["data"]["path"]}}, out=tmp_path)
    with pytest.raises(UserError, match="of a test set: test"):
        mc.load_job({**tables, "data": {"path": tables["data"]["path"], "test_rows": 4}})


class Candidates:
    """A test set of three users, each with a left-out item and four others."""

    n_samples, sizes = 15, {"candidates": 5}

    def read(self, start, stop):
        return None


@pytest.mark.parametrize(("k", "rate"), [(1, 1 / 3), (2, 1 / 3), (3, 2 / 3), (5, 1.0)])
def test_the_hit_rate_counts_left_out_items_among_the_k_largest(k, rate, monkeypatch):
    scores = np.array([5, 1, 2, 3, 4, 3, 4, 3, 1, 0, 0, 1, 2, 3, 4], dtype=float)  # places 1, 3 (a tie counts against it), 5
    held_out = HeldOut.__new__(HeldOut)
    monkeypatch.setattr(HeldOut, "scores", lambda self, x: scores)
    view = ProblemView(None, None, 0.0, None, None, np.nan, Candidates())
    vars(view)["held_out"] = held_out
    assert metrics["hit-rate"](k=k).value(np.zeros(2), view) == pytest.approx(rate)
    monkeypatch.setattr(HeldOut, "scores", lambda self, x: scores[:7])
    with pytest.raises(ValueError, match="test_rows should be a multiple of 5"):
        metrics["hit-rate"](k=k).value(np.zeros(2), view)


def test_a_hit_rate_needs_candidates(tmp_path):
    with pytest.raises(UserError, match="of a test set of candidates"):
        mc.run(job(tmp_path, log={"metrics": ["hit-rate"]}), out=tmp_path)
