"""What a user reads of a run, row by row, beside what NumPy makes of its data and of its messages: by hand."""

import time
from dataclasses import dataclass

import numpy as np
import pytest
from helpers import plain_literature as plain
from helpers.plays import play, problem
from helpers.running import run_of

import mpi_compress as mc
from mpi_compress.cli.main import main

A, Y = mc.generators["gspar"](samples=100, dim=40, seed=2).make()
HEAD = 4  # bytes of the length that comes before a message


def loss(x):
    return np.mean(np.logaddexp(0, -Y * (A @ x)))


def gradient(x):
    return A.T @ (-Y / (1 + np.exp(Y * (A @ x)))) / 100


L = np.linalg.eigvalsh(A.T @ A)[-1] / 400  # of the mean logistic loss


@pytest.mark.parametrize("mu", [0.0, 0.3])
def test_beside_a_penalty_that_is_not_smooth_the_gradient_norm_is_that_of_the_mapping_with_step_1_over_l(mu, tmp_path):
    """‖x − prox(x − γ∇f(x))‖/γ with γ = 1/L; the prox of the lasso shrinks every coordinate by γλ."""
    objective = {"mu": mu, "penalty": {"name": "l1", "weight": 0.02}, "f_star": "skip"}
    start = {"at": "random", "scale": 0.3}
    for rounds in (0, 7):
        run = run_of(tmp_path / str(rounds), {"name": "gd"}, objective=objective, rounds=rounds, start=start)
        x, γ = run.x, 1 / (L + mu)
        y = x - γ * (gradient(x) + mu * x)
        mapped = np.sign(y) * np.maximum(np.abs(y) - γ * 0.02, 0)
        assert run.trace["grad_norm"][-1] == pytest.approx(np.linalg.norm(x - mapped) / γ, rel=1e-9)
        assert run.trace["loss"][-1] == pytest.approx(loss(x) + mu / 2 * x @ x + 0.02 * np.abs(x).sum(), rel=1e-12)


@pytest.mark.parametrize("regularizer", ["worker", "master"])
def test_mu_and_the_weight_of_a_ridge_add_up(regularizer, tmp_path):
    objective = {"mu": 0.25, "penalty": {"name": "l2", "weight": "0.5 L"}, "regularizer": regularizer}
    run = run_of(tmp_path, {"name": "gd"}, objective=objective, rounds=5, start={"at": "random"})
    µ, x = 0.25 + 0.5 * L, run.x
    assert (run.attrs["mu"], run.attrs["L"]) == pytest.approx((µ, L + µ), rel=1e-9)
    assert run.trace["loss"][-1] == pytest.approx(loss(x) + µ / 2 * x @ x, rel=1e-12)
    assert run.trace["grad_norm"][-1] == pytest.approx(np.linalg.norm(gradient(x) + µ * x), rel=1e-9)


def test_a_regulariser_at_the_master_is_applied_with_the_step_of_the_round(tmp_path):
    """x ← (1 − γ_k µ) x − γ_k ∇f(x), γ_k = 1/(2 + k), and then by pairs of a round and a step."""
    falling = {"form": "1/t", "a": 1.0, "b": 2.0}
    for step, γ in ((falling, lambda k: 1 / (2 + k)), ([[0, 0.5], [3, 0.25], [5, 0.01]], lambda k: (0.5, 0.25, 0.01)[(k >= 3) + (k >= 5)])):
        for name in ("gd", "sgd"):
            algorithm = {"name": name, "step": step, "regularizer": "master"}
            run = run_of(tmp_path / name, algorithm, objective={"mu": 0.4}, rounds=8, start={"offset": 0.5})
            x = np.full(40, 0.5)
            for k in range(8):
                x = (1 - γ(k) * 0.4) * x - γ(k) * gradient(x)
            assert run.x == pytest.approx(x, rel=1e-9)


@pytest.mark.parametrize("mu", [0.3, 0.0])
def test_the_momentum_of_nesterov_is_that_of_l_and_mu(mu, tmp_path):
    """τ = (√L − √µ)/(√L + √µ), and k/(k + 3) where µ = 0."""
    run = run_of(tmp_path, {"name": "nesterov"}, objective={"mu": mu}, rounds=7, start={"offset": 0.5})
    x = y = np.full(40, 0.5)
    for k in range(7):
        before, x = x, y - (gradient(y) + mu * y) / (L + mu)
        τ = (np.sqrt(L + mu) - np.sqrt(mu)) / (np.sqrt(L + mu) + np.sqrt(mu)) if mu else k / (k + 3)
        y = x + τ * (x - before)
    assert run.x == pytest.approx(x, rel=1e-9)


def test_a_threshold_given_by_an_accuracy_follows_a_step_that_falls():
    """λ_k = √(ε/d)/γ_k: what is sent in round k is as large as that, and what is kept is smaller."""
    p, kept, points = problem(mu=0.1), [], []
    step = [[0, "1/L"], [4, "0.1/L"]]

    def look(k, node, workers):
        points.append(node.x.dense().copy())
        kept.append([np.abs(worker.e).max() for worker in workers.values()])

    play(p, {"name": "ef", "step": step}, {"name": "hard-threshold", "accuracy": 1e-3}, 8, look)
    λ = [np.sqrt(1e-3 / p.dim) * p.numbers["L"] / (1.0 if k < 4 else 0.1) for k in range(8)]
    assert np.all(np.array(kept[1:]).max(axis=1) < λ)
    assert np.array(kept[1:]).max() > λ[0], "errors outgrow the threshold of the first rounds later"


def test_whole_gradients_are_free_in_round_0_alone(tmp_path):
    """MARINA's later full rounds are counted by all conventions; of the gradients of round 0 two do not speak."""
    n, k, p, rounds = 3, 4, 0.4, 12
    up = {"compressor": {"name": "random-k", "k": k}, "codec": "fixed"}
    log = {"count": ["values-only-32", "values-only-64", "values+indices", "cat"]}
    run = run_of(tmp_path, {"name": "marina", "p": p, "step": 0.1}, up, count=n, rounds=rounds, seed=3, log=log)
    full = plain.coins(p, rounds, seed=3)
    assert 3 <= sum(full) < rounds
    for column, whole, some, first in (
        ("bits_values_32", 32 * 40, 32 * k, 0),
        ("bits_values_64", 64 * 40, 64 * k, 0),
        ("bits_values_indices", 32 * 40, (32 + 6) * k, 32 * 40),
        ("bits_cat", 64 * 40, (64 + 6) * k, 64 * 40),
    ):
        wanted = np.cumsum([0, n * first, *(n * (whole if each else some) for each in full[1:])])
        assert run.trace[column].tolist() == wanted.tolist(), column


def test_gradient_descent_without_compression_has_no_free_start(tmp_path):
    run = run_of(tmp_path, {"name": "gd"}, count=2, rounds=3, log={"count": ["values-only-32"]})
    assert run.trace["bits_values_32"].tolist() == [2 * 32 * 40 * k for k in range(4)]


@pytest.mark.parametrize(("name", "up"), [("lag", "identity"), ("ef21", {"name": "top-k", "k": 4})])
def test_the_whole_start_of_lag_is_as_free_as_that_of_ef21(name, up, tmp_path):
    """One convention for both: what later messages correct is not counted in round 0."""
    algorithm = {"name": name, **({"first": "gradient"} if name == "ef21" else {})}
    run = run_of(tmp_path, algorithm, {"compressor": up}, count=2, rounds=6, log={"count": ["values-only-32", "values+indices"]})
    later = run.trace["elements_up"] - run.trace["elements_up"][1]
    assert run.trace["bits_values_32"].tolist() == (32 * np.maximum(later, 0)).tolist()
    assert run.trace["bits_values_indices"][1] == 2 * 32 * 40
    assert later[-1] > 0


def test_a_silent_worker_sends_its_length_and_counts_no_paper_bits(tmp_path):
    """LAG's workers send whole gradients, or nothing: 4 bytes on the wire, and c0 where a message has a cost of its own."""
    cost = {"model": "affine", "c0": 7.0, "c1": 2.0}
    run = run_of(tmp_path, {"name": "lag", "zeta": 8.0}, {"compressor": "identity", "codec": "dense"}, count=4, rounds=25, cost=cost)
    spoke, rounds = run.trace["elements_up"] // 40, run.trace["round"]
    silent = 4 * rounds - spoke
    assert silent[-1] > 10
    assert spoke[-1] > 10
    assert run.trace["wire_bits_up"].tolist() == (8 * (HEAD * 4 * rounds + 8 * 40 * spoke)).tolist()
    assert run.trace["paper_bits_up"].tolist() == (64 * 40 * spoke).tolist()
    assert run.trace["cost_up"].tolist() == (7.0 * 4 * rounds + 2.0 * 64 * 40 * spoke).tolist()


def test_an_empty_message_costs_what_a_message_costs():
    affine, packets = mc.costs["affine"](c0=3.5, c1=0.5), mc.costs["affine"](c0="54 B")
    assert (affine.cost(0), affine.cost(8), packets.cost(0), packets.cost(1)) == (3.5, 7.5, 432, 433)
    assert affine.cost(np.array([0.0, 8.0])).tolist() == [3.5, 7.5]
    assert affine.of(80, 0.0) == 3.5, "it is charged for the paper's bits"


@pytest.mark.parametrize("codec", ["fixed", "bitmap"])
def test_the_wire_model_prices_the_length_and_all_that_a_codec_writes(codec, tmp_path):
    """What /theory plans for T coordinates is what messages of T coordinates take."""
    log, cost = {"theory": True}, {"model": "wire"}
    for T in (1, 7, 40):
        up = {"compressor": {"name": "top-k", "k": T}, "codec": codec}
        run = run_of(tmp_path / str(T), {"name": "gd"}, up, count=1, rounds=2, log=log, cost=cost)
        body = {"fixed": 1 + 8 * T + -(-6 * T // 8), "bitmap": 1 + 5 + 8 * T}[codec]
        assert np.diff(run.trace["wire_bits_up"]).tolist() == [8 * (HEAD + body)] * 2
        assert run.trace["cost_up"].tolist() == run.trace["wire_bits_up"].tolist()
        assert run.attrs["theory_cost"][run.attrs["theory_T"].tolist().index(T)] == 8 * (HEAD + body)


def test_ternary_digits_take_27_bits_for_17_of_them_and_what_the_last_ones_need():
    codec, rng = mc.codecs["ternary"](), np.random.default_rng(0)
    for d in (1, 2, 3, 5, 12, 16, 17, 18, 33, 34, 40, 136, 137):
        bits = d // 17 * 27 + int(np.ceil(d % 17 * np.log2(3)))
        for signs in (np.ones(d), -np.ones(d), np.zeros(d), rng.integers(-1, 2, d)):
            data = codec.encode(mc.Ternary(signs.astype(np.int8), 2.5))
            assert data.size == 8 + -(-bits // 8)
            read, end = codec.decode(data, 0, d, mc.Ternary)
            assert end == data.size
            assert read.dense().tolist() == (2.5 * signs).tolist()


def test_a_run_ends_at_its_relative_distance(tmp_path, capsys):
    """At the first row with ‖x − x*‖ ≤ 0.1 ‖x0 − x*‖; x* of least squares is NumPy's."""
    data = {"generator": "least-squares", "samples": 40, "dim": 6, "condition": 8.0}
    tables = {"data": data, "count": 2, "objective": {"loss": "least-squares"}, "start": {"offset": 3.0}}
    run = run_of(tmp_path, {"name": "gd"}, rounds=500, stop={"relative_distance": 0.1, "rounds": 500}, **tables)
    B, b = mc.generators["least-squares"](**{key: data[key] for key in ("samples", "dim", "condition")}).make()
    best = np.linalg.lstsq(B, b, rcond=None)[0]
    x, shares, γ = np.full(6, 3.0), [], 40 / np.linalg.eigvalsh(B.T @ B)[-1]
    while not shares or shares[-1] > 0.1:
        shares.append(np.linalg.norm(x - best) / np.linalg.norm(3 - best))
        x = x - γ * B.T @ (B @ x - b) / 40
    assert run.column("relative_distance") == pytest.approx(shares, rel=1e-6)
    assert 5 < len(shares) < 500
    assert main(["show", str(run.file)]) == 0
    assert "complete (relative_distance ≤ 0.1)" in capsys.readouterr().out


class Scores:
    """A test set in place of a model's: two candidates' lists."""

    sizes = {"candidates": 3}  # noqa: RUF012

    def __init__(self, *scores):
        self.test, self.held_out, self.found = self, self, np.array(scores)

    def scores(self, x):
        return self.found


def test_ties_count_against_the_hit_rate():
    """The first of every three scores is that of the item which was left out."""
    for k, wanted in ((1, 1 / 4), (2, 3 / 4), (3, 1.0)):
        view = Scores(3.0, 1.0, 2.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 2.0, 3.0, 1.0)
        assert mc.metrics["hit-rate"](k=k).value(np.zeros(1), view) == wanted
    two_columns = np.array([[0.0, 1.0], [5.0, 6.0], [0.0, 0.5]])  # the difference counts: 1, 1, 0.5
    assert mc.metrics["hit-rate"](k=1).value(np.zeros(1), Scores(*two_columns)) == 0.0


@pytest.mark.parametrize("own", [False, True])
def test_a_margin_of_0_counts_as_minus_1_in_the_test_accuracy(own, tmp_path, registered_for_one_test_only):
    @mc.losses.register("own-logistic")
    @dataclass(frozen=True)
    class OwnLogistic(mc.Loss):
        formula = "log(1 + exp(-y m))"
        curvature = 0.25

        def value_and_slope(self, y, m):
            return np.logaddexp(0, -y * m), -y / (1 + np.exp(y * m))

    for name in ("train", "test"):
        (tmp_path / f"{name}.svm").write_text("+1 1:1\n-1 2:1\n-1 1:2\n+1 2:3\n-1 1:0.5\n")
    data = {"path": str(tmp_path / "train.svm"), "test": str(tmp_path / "test.svm")}
    run = run_of(tmp_path, {"name": "gd", "step": 0.1}, data=data, count=1, rounds=1, objective={"loss": "own-logistic" if own else "logistic"})
    assert run.trace["test_accuracy"][0] == 3 / 5
    assert run.trace["test_loss"][0] == pytest.approx(np.log(2))


@pytest.mark.parametrize("every", [1, 3])
def test_the_parts_of_a_run_s_time_do_not_overlap_and_add_up(every, tmp_path, registered_for_one_test_only):
    """compute + pack + exchange + update = seconds in every row, where gradients take nearly all of the time."""

    @mc.losses.register("slow")
    @dataclass(frozen=True)
    class Slow(mc.Loss):
        formula = "(y - m)^2 / 2"
        curvature = 1.0

        def value_and_slope(self, y, m):
            time.sleep(0.004)
            return (m - y) ** 2 / 2, m - y

    objective = {"loss": "slow", "f_star": "skip"}
    run = run_of(tmp_path, {"name": "gd"}, {"name": "top-k", "k": 5}, count=3, rounds=9, objective=objective, log={"every": every})
    t = run.timing
    assert t["compute"] + t["pack"] + t["exchange"] + t["update"] == pytest.approx(t["seconds"], rel=1e-9, abs=1e-12)
    assert 9 * 3 * 0.004 < t["compute"][-1] < t["seconds"][-1]
    assert t["pack"][-1] > 0
    assert all(np.all(np.diff(t[name]) >= 0) for name in ("seconds", "compute", "update", "evaluate"))


def test_the_bits_of_a_method_that_is_bound_to_a_scalar_have_it():
    """CAT's stochastic payload is FPP + T(⌈log2 d⌉ + FPP): the scalar ω is in the bits of every worker, in those of one alone it is not."""
    p = problem(count=2, dim=30)
    one = problem(count=1, dim=30)
    for floats in (32, 64):
        codec = {"name": "fixed", "float": floats}
        sent = play(p, {"name": "cat", "budget": 6}, {"name": "stochastic"}, 6, codec=codec).trace
        assert np.diff(sent["paper_bits_up"]) == pytest.approx(2 * floats + np.diff(sent["elements_up"]) * (5 + floats))
        alone = play(one, {"name": "cat", "budget": 6}, {"name": "stochastic"}, 6, codec=codec).trace
        assert np.diff(alone["paper_bits_up"]) == pytest.approx(np.diff(alone["elements_up"]) * (5 + floats))


def improvement(g, T):
    """ω(T) = ‖g‖²/Σ g²/p, the p of least variance with Σp = T: the m largest have p = 1, the others a share of what is left."""
    a = np.sort(np.abs(g))[::-1]
    for m in range(T + 1):
        rest = a[m:].sum()
        if m == T or (T - m) * a[m] <= rest:
            spent = np.sum(a[:m] ** 2) + (rest**2 / (T - m) if m < T else np.inf if rest else 0)
            return a @ a / spent
    raise AssertionError


@pytest.mark.parametrize("count", [1, 2])
def test_the_budget_of_a_stochastic_method_is_planned_with_the_scalar_in_its_payload(count):
    """argmax ω(T)/P(T), P(T) = FPP + T(⌈log2 d⌉ + FPP) for several workers: without the scalar T = 1 would always win."""
    p = problem(count=count, dim=30, samples=40)
    budgets, points = [], []

    def look(k, node, workers):
        points.append(node.x.copy())
        budgets.append([worker.budget for worker in workers.values()])

    play(p, {"name": "cat"}, {"name": "stochastic"}, 5, look)
    for k in range(5):
        for i, f in p.fs.items():
            g = f.value_and_gradient(points[k])[1]
            ratios = [improvement(g, T) / (64 * (count > 1) + T * (5 + 64)) for T in range(1, 31)]
            best = int(np.argmax(np.array(ratios) >= max(ratios) * (1 - 1e-12))) + 1
            assert budgets[k + 1][i] == best
            assert (best > 1) == (count > 1)
