"""Error feedback against plain NumPy loops, and what the hard-threshold paper proves of it."""

import lzma
from dataclasses import dataclass

import numpy as np
import pytest
from helpers import plain_ef, plain_products
from helpers.plain_ef import Shards, top
from helpers.plain_ef import threshold as above
from helpers.plain_literature import batches
from helpers.plays import play, problem
from helpers.running import run_of
from sklearn.datasets import load_svmlight_file

import mpi_compress as mc
from mpi_compress.algorithms.estimators.ef import EF
from mpi_compress.core.streams import Role, Streams


def shards(run, count=5):
    samples, labels = mc.datasets.generators["gspar"](samples=100, dim=40, seed=2).make()
    return Shards(samples, labels, count, run.attrs["mu"])


@pytest.fixture(scope="module")
def madelon(real_data):
    with lzma.open(real_data / "madelon.xz") as text:
        samples, labels = load_svmlight_file(text, n_features=500)
    return samples.toarray(), labels


TOP, HARD = {"name": "top-k", "k": 5}, {"name": "hard-threshold", "threshold": 3000.0}


@pytest.mark.parametrize(
    ("algorithm", "up", "plain"),
    [
        ({"name": "ef"}, TOP, lambda f, x, γ, s: plain_ef.algorithm_1(f, x, top(5), γ, 500)[0]),
        ({"name": "ef"}, HARD, lambda f, x, γ, s: plain_ef.algorithm_1(f, x, above(3000.0), γ, 500)[0]),
        ({"name": "ef-gdstar"}, TOP, lambda f, x, γ, s: plain_ef.algorithm_1(f, x, top(5), γ, 500, s)[0]),
        ({"name": "ef-gdstar"}, HARD, lambda f, x, γ, s: plain_ef.algorithm_1(f, x, above(3000.0), γ, 500, s)[0]),
        (
            {"name": "ef", "momentum": 0.9, "step": "0.05/L"},
            TOP,
            lambda f, x, γ, s: plain_ef.algorithm_2(f, x, top(5), γ / 20, 500, 0.9),
        ),
        (
            {"name": "ef", "momentum": 0.9, "form": "update", "step": "0.02/L"},
            HARD,
            lambda f, x, γ, s: plain_ef.algorithm_3(f, x, above(3000.0), γ / 50, 500, 0.9),
        ),
        (
            {"name": "ef", "momentum": 0.9, "form": "update", "masking": True, "step": "0.02/L"},
            TOP,
            lambda f, x, γ, s: plain_ef.algorithm_3(f, x, top(5), γ / 50, 500, 0.9, masking=True),
        ),
    ],
    ids=["ef-top", "ef-hard", "gdstar-top", "gdstar-hard", "alg2-top", "alg3-hard", "alg3-masked"],
)
def test_trajectories_on_madelon_equal_a_plain_implementation(algorithm, up, plain, madelon, tmp_path):
    start = {"at": "optimum", "offset": 1e-4}
    run = run_of(tmp_path, algorithm, up, {"name": "madelon"}, 20, 500, start=start, objective={"mu": "1e-4 L"}, log={"every": 100})
    f = Shards(*madelon, 20, run.attrs["mu"])
    x0 = run_of(tmp_path, {"name": "gd"}, None, {"name": "madelon"}, 20, 0, start=start, objective={"mu": "1e-4 L"}).x
    xs = plain(f, x0, 1 / run.attrs["L"], x0 - 1e-4)
    assert np.linalg.norm(run.x - xs[-1]) <= 1e-10 * np.linalg.norm(xs[-1])
    losses = np.array([f.loss(x) for x in xs[::100]])
    assert np.max(np.abs(run.trace["loss"] / losses - 1)) <= 1e-10


@pytest.mark.parametrize("λ", [0.5, 0.9])
def test_momentum_of_gradients_with_minibatches_and_the_regulariser_at_the_master(λ, tmp_path):
    algorithm = {"name": "ef", "momentum": λ, "step": 0.05, "batch": 3, "regularizer": "master"}
    run = run_of(tmp_path, algorithm, {"name": "top-k", "k": 4}, rounds=60, seed=8)
    f, batches, streams = shards(run), mc.Batches(3, "with-replacement"), Streams(8)
    µ, f.mu = f.mu, 0.0

    def rows(i, k):
        return batches.rows(20, mc.Round(k, streams, Role.WORKER, i)).astype(int)

    xs = plain_ef.algorithm_2(f, np.zeros(40), top(4), 0.05, 60, λ, rows, µ)
    np.testing.assert_allclose(run.x, xs[-1], rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("direction", ["nesterov", "heavy-ball"])
def test_other_directions_of_momentum(direction, tmp_path):
    for form, plain in (("gradient", plain_ef.algorithm_2), ("update", plain_ef.algorithm_3)):
        algorithm = {"name": "ef", "momentum": 0.9, "direction": direction, "form": form, "step": 0.05}
        for number, (up, C) in enumerate(
            (({"name": "top-k", "k": 4}, top(4)), ({"name": "hard-threshold", "threshold": 0.02}, above(0.02)))
        ):
            run = run_of(tmp_path / f"{form}{number}", algorithm, up, rounds=40)
            xs = plain(shards(run), np.zeros(40), C, 0.05, 40, 0.9, direction=direction)
            np.testing.assert_allclose(run.x, xs[-1], rtol=1e-10, atol=1e-13)
    with pytest.raises(mc.UserError, match="it needs momentum"):
        run_of(tmp_path, {"name": "ef", "direction": direction, "step": 0.1}, {"name": "top-k", "k": 4}, rounds=1)


@pytest.mark.parametrize("feedback", [True, False])
def test_adam_is_adam_on_the_mean_of_what_was_sent(feedback, tmp_path):
    algorithm = {"name": "adam", "step": 0.02, "beta1": 0.25, "beta2": 0.5, "feedback": feedback}  # HT table 5
    run = run_of(tmp_path, algorithm, {"name": "top-k", "k": 4}, rounds=50)
    f, sent = shards(run), plain_products.ef if feedback else plain_products.gd
    xs = plain_products.by_mean(f, np.zeros(40), sent(f, lambda v, i, k: top(4)(v)), plain_products.adam(0.02, 0.25, 0.5), 50)
    np.testing.assert_allclose(run.x, xs[-1], rtol=1e-9, atol=1e-12)
    with pytest.raises(mc.UserError, match="at least 0 and below 1"):
        run_of(tmp_path, {"name": "adam", "beta1": 1.0}, {"name": "top-k", "k": 4}, rounds=1)


@pytest.mark.parametrize("reset", [1, 3])
@pytest.mark.parametrize(
    ("up", "C"), [({"name": "top-k", "k": 4}, top(4)), ({"name": "hard-threshold", "threshold": 0.02}, above(0.02))]
)
def test_errors_are_dropped_in_the_rounds_that_reset_names(reset, up, C, tmp_path):
    run = run_of(tmp_path, {"name": "ef", "step": 0.5, "reset": reset}, up, rounds=40)
    xs, _ = plain_ef.algorithm_1(shards(run), np.zeros(40), C, 0.5, 40, reset=reset)
    kept, _ = plain_ef.algorithm_1(shards(run), np.zeros(40), C, 0.5, 40)
    np.testing.assert_allclose(run.x, xs[-1], rtol=1e-10, atol=1e-13)
    assert np.linalg.norm(xs[-1] - kept[-1]) > 1e-3 * np.linalg.norm(xs[-1])


@dataclass(frozen=True)
class Half(EF):
    """Error feedback that a user derived: half of every answer."""

    def master_answers(self, node, master, ups, t):
        mean = self.mean(ups)
        return self.down.pack(mc.Dense(mean.dense() / 2), t)


def test_what_derives_from_error_feedback_keeps_its_own_lines():
    p = problem()
    half, whole = (play(p, method, {"name": "identity"}, 5) for method in (Half(step=0.2), EF(step=0.1)))
    assert type(half.method) is Half
    np.testing.assert_allclose(half.x, whole.x, rtol=1e-12)
    half, whole = (play(p, method, {"name": "identity"}, 5) for method in (Half(step=0.2, momentum=0.5), EF(step=0.1, momentum=0.5)))
    np.testing.assert_allclose(half.x, whole.x, rtol=1e-12)


def test_ties_of_top_k_on_minibatches_are_decided_by_the_lowest_index_and_by_the_rounding_of_sums(tmp_path):
    """Rows of 0 and 1 give equal magnitudes: to follow a run, a loop must round as it does, in units of the gradient, each row's
    slope times its weight before rows are added up; then it has the same ties, and the same x."""
    A = (np.random.default_rng(0).random((96, 24)) < 0.25).astype(float)
    A[:, 12:] = 1 - A[:, :12]  # a feature of two values has two columns
    y = np.where(np.random.default_rng(1).random(96) < 0.5, 1.0, -1.0)
    lines = [f"{b:+g} " + " ".join(f"{j + 1}:1" for j in np.flatnonzero(a)) for a, b in zip(A, y, strict=True)]
    (tmp_path / "ones.svm").write_text("\n".join([*lines, ""]))
    job = {"seed": 3, "data": {"path": str(tmp_path / "ones.svm"), "dim": 24}, "objective": {"mu": 0.01}}
    job |= {"workers": {"count": 4}, "stop": {"rounds": 60}}
    way = {"label": "run", "algorithm": {"name": "ef", "step": 0.5, "batch": 4}, "up": {"compressor": {"name": "top-k", "k": 3}}}
    x_of_run = mc.run({**job, "run": [way]}, out=tmp_path, quiet=True)[0].x
    f, ends, ties = Shards(A, y, 4, 0.01), {}, 0
    for first in (1, -1):  # of equal magnitudes the lowest index, or the highest
        x, e, rows = np.zeros(24), np.zeros((4, 24)), batches(f, 4, seed=3)
        for k in range(60):
            sent = np.zeros(24)
            for i, (a, b) in enumerate(f.parts):
                a, b = a[rows(i, k)], b[rows(i, k)]
                p = e[i] + (a.T @ (-b / (1 + np.exp(b * (a @ x))) * (4 * 24 / 96 / 4)) + 0.01 * x)
                sizes = np.sort(np.abs(p))
                ties += sizes[-3] == sizes[-4]
                kept = np.lexsort((first * np.arange(24), -np.abs(p)))[:3]
                e[i] = p
                e[i, kept] = 0
                sent[kept] += p[kept] / 4
            x = x - 0.5 * sent
        ends[first] = np.linalg.norm(x - x_of_run) / np.linalg.norm(x)
    assert ties > 4
    assert ends[1] < 1e-12
    assert ends[-1] > 1e-2
