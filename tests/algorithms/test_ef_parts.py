"""Minibatches, steps, averages, regimes, and the paths that cost what they touch."""

import numpy as np
import pytest
from helpers.plays import play, problem
from helpers.refusals import naming
from helpers.running import run_of

import mpi_compress as mc
from mpi_compress import UserError
from mpi_compress.algorithms import algorithms
from mpi_compress.algorithms.regimes import Regime
from mpi_compress.algorithms.sampling import Batches
from mpi_compress.algorithms.steps import bind
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.job.tables import Ending
from mpi_compress.messages.compressors.largest import Accordion
from mpi_compress.messages.kinds import Dense
from mpi_compress.problem.constants import gradient_noise
from mpi_compress.problem.data_terms import data_term
from mpi_compress.problem.datasets import libsvm
from mpi_compress.problem.datasets.store import open_data
from mpi_compress.problem.losses import losses
from mpi_compress.problem.objective import Objective, Shards
from mpi_compress.problem.partitions import Split
from mpi_compress.problem.rows import Rows

NUMBERS = {"L": 4.0, "mu": 0.5, "n": 3.0, "d": 10.0, "N": 20.0}


def at(k, who=0, seed=0):
    return Round(k, Streams(seed), Role.WORKER, who)


@pytest.mark.parametrize("batch", [1, 4, 10, 23])
def test_an_epoch_holds_every_row_once(batch):
    batches, rounds = Batches(batch, "epoch"), -(-23 // batch)
    for epoch in range(3):
        drawn = [batches.rows(23, at(epoch * rounds + r)) for r in range(rounds)]
        assert sorted(np.concatenate(drawn).tolist()) == list(range(23))
        assert [len(d) for d in drawn[:-1]] == [batch] * (rounds - 1)


def test_rows_with_replacement_are_uniform():
    batches = Batches(3, "with-replacement")
    counts = np.bincount(np.concatenate([batches.rows(7, at(k)) for k in range(7000)]).astype(np.int64), minlength=7)
    assert np.sum((counts - 3000) ** 2 / 3000) < 22.5  # χ² of 6 degrees of freedom: 1 in 1000


@pytest.mark.parametrize("sampling", ["with-replacement", "epoch"])
def test_rows_depend_on_their_address_alone(sampling):
    whole = [Batches(2, sampling).rows(9, at(k, who=3)).tolist() for k in range(700)]
    walking = Batches(2, sampling)
    assert [walking.rows(9, at(k, who=3)).tolist() for k in range(700)] == whole
    assert [walking.rows(9, at(k, who=4)).tolist() for k in range(50)] != whole[:50]
    assert walking.rows(9, at(5, who=3)).tolist() == whole[5]


def test_the_mean_of_an_epochs_gradients_is_the_full_gradient():
    p = problem(count=3)
    f, x = p.fs[1], np.linspace(-1, 1, p.dim)
    full = f.value_and_gradient(x)[1].copy()
    batches = Batches(4, "epoch")
    parts = [f.gradient(x, batches.rows(20, at(k, who=1))).copy() for k in range(5)]
    assert np.allclose(np.mean(parts, axis=0), full, rtol=1e-12, atol=1e-14)


def test_every_compressor_sees_the_same_rows(tmp_path):
    """With γ = 0 nearly, x does not move, so error-compensated gradients of the first round are those of the rows alone."""
    ups = [{"name": "top-k", "k": 3}, {"name": "hard-threshold", "threshold": 1e9}, {"name": "qsgd", "levels": 3}]
    algorithm = {"name": "ef", "batch": 2, "step": 1e-12, "feedback": False}
    norms = [run_of(tmp_path / str(i), algorithm, up, rounds=20).trace["corrected_norm"] for i, up in enumerate(ups)]
    assert np.allclose(norms[0], norms[1], rtol=1e-9)
    assert np.allclose(norms[0], norms[2], rtol=1e-9)


def test_steps_as_jobs_write_them():
    assert bind("1/L", NUMBERS) == 0.25
    stepwise = bind([[0, "1/L"], [5, 0.1], [9, "mu/L"]], NUMBERS)
    assert [stepwise.at(k) for k in (0, 4, 5, 8, 9, 99)] == [0.25, 0.25, 0.1, 0.1, 0.125, 0.125]
    falling = bind({"form": "1/t", "a": "4/mu", "b": "16 L/mu"}, NUMBERS)
    assert [falling.at(k) for k in (0, 1, 128)] == [8 / 128, 8 / 129, 8 / 256]
    assert bind({"form": "1/sqrt(t)", "a": 6}, NUMBERS).at(8) == 2.0


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (0.0, "must be more than 0"),
        ("1/M", "M"),
        ("1/Lmax", "L_max"),
        ([], "pairs of a round and a value"),
        ([[1, 0.1]], "the rounds increasing from 0"),
        ([[0, 0.1], [0, 0.2]], "increasing 0"),
        ([[0, True]], "numbers or formulas"),
        ({"form": "1/k", "a": 1}, '"1/t" or "1/sqrt'),
        ({"form": "1/t"}, "a = …"),
        ([[0, "-1/L"]], "-1/L"),
    ],
)
def test_wrong_steps_are_refused_before_anything_runs(step, why, tmp_path):
    with pytest.raises(UserError, match=naming(f"algorithm {why}")):
        run_of(tmp_path, {"name": "ef", "step": step}, {"name": "top-k", "k": 3})


@pytest.mark.parametrize(
    ("average", "step", "weight"),
    [
        ("uniform", "1/L", lambda t, p: 1.0),
        ("linear", {"form": "1/t", "a": "4/mu", "b": "16 L/mu"}, lambda t, p: 16 * p["L"] / p["mu"] + t),
        ("geometric", "1/L", lambda t, p: (1 - p["mu"] / p["L"] / 2) ** -(t + 1)),
    ],
)
def test_the_point_to_evaluate_is_the_weighted_mean_of_all_iterates(average, step, weight):
    p = problem()
    iterates = []
    done = play(
        p,
        {"name": "ef", "step": step, "average": average},
        {"name": "top-k", "k": 3},
        40,
        lambda k, n, w: iterates.append(n.x.dense().copy()),
    )
    weights = np.array([weight(t, p.numbers) for t in range(41)])
    assert np.allclose(done.x, weights @ np.array(iterates) / weights.sum(), rtol=1e-11)


def test_a_threshold_by_accuracy_is_settled_by_the_step():
    p = problem()
    done = play(p, {"name": "ef", "step": "0.5/L"}, {"name": "hard-threshold", "accuracy": 1e-4}, 50)
    assert done.method.up.compressor.threshold == pytest.approx(np.sqrt(1e-4 / p.dim) / (0.5 / p.numbers["L"]))
    assert np.all(done.trace["error_norm"] ** 2 <= 1e-4)
    falling = play(
        p, {"name": "ef", "step": {"form": "1/t", "a": "4/mu", "b": "16 L/mu"}}, {"name": "hard-threshold", "accuracy": 1e-4}, 50
    )
    assert np.all(falling.trace["error_norm"] ** 2 <= 1e-4)


@pytest.mark.parametrize("data", ["sparse", "dense"])
def test_the_noise_that_settles_a_threshold_is_that_of_the_gradients_at_the_start(data, tmp_path):
    """E‖g − ∇f_i‖² over all rows of each worker, and the spread of the ∇f_i, written out."""
    rng = np.random.default_rng(3)
    a = rng.standard_normal((11, 6)) * (rng.random((11, 6)) < (0.25 if data == "sparse" else 1.0))
    labels = np.where(rng.random(11) < 0.5, -1.0, 1.0)
    labels[:2] = [1.0, -1.0]
    with (tmp_path / "d").open("wb") as file:
        libsvm.write(file, a, labels)
    job = tmp_path / "job.toml"
    job.write_text(
        'data = { path = "d", dim = 6 }\nobjective.mu = 0.1\nworkers.count = 3\nstart = { at = "zero", offset = 0.2 }\n'
        'algorithm = { name = "ef", step = 0.01, batch = 2 }\nstop.rounds = 3\n'
        'up.compressor = { name = "hard-threshold", like_k = 2, estimate = true }'
    )
    spec = mc.load_job(job).runs[0]
    set_ = open_data(spec.data, spec.folder, Split(), "sign")
    x = np.full(6, 0.2)
    rows, means, noises = list(set_.shards(range(3), 3)), [], []
    starts = np.cumsum([0] + [len(r) for r in rows])
    for i in range(3):
        A, y = a[starts[i] : starts[i + 1]], labels[starts[i] : starts[i + 1]]
        each = -(y / (1 + np.exp(y * (A @ x))))[:, None] * A * (3 * len(y) / 11) + 0.1 * x
        means.append(each.mean(axis=0))
        noises.append(np.mean(np.sum((each - means[-1]) ** 2, axis=1)) / 2)
    zeta2 = np.mean(np.sum((means - np.mean(means, axis=0)) ** 2, axis=1))
    fs = [Objective(shard, losses["logistic"](), 3 / 11, 0.1) for shard in rows]
    assert gradient_noise(fs, 3, 2, x) == pytest.approx((zeta2, np.mean(noises)), rel=1e-9)
    assert gradient_noise(fs, 3, None, x)[1] == 0.0
    done = mc.run(mc.load_job(job), out=tmp_path)[0]
    level = 2 / np.sqrt(2) * np.sqrt(6 * zeta2 + np.mean(noises))
    by_hand = job.read_text().replace("like_k = 2, estimate = true", f"threshold = {float(level)!r}")
    job.write_text(by_hand)
    same = mc.run(mc.load_job(job), out=tmp_path)[0]
    assert np.array_equal(done.trace["elements_up"], same.trace["elements_up"])
    assert np.allclose(done.x, same.x, rtol=1e-12)


def sparse_problem(count, apart=True):
    """Sparse rows, and the same rows held dense."""
    rng = np.random.default_rng(4)
    A = rng.standard_normal((60, 50)) * (rng.random((60, 50)) < 0.1)
    labels = rng.choice([-1.0, 1.0], 60)
    import scipy.sparse as sp

    both = []
    for held in ("sparse", "dense"):
        p, terms = problem(count=count, dim=50, apart=apart), []
        for i in range(count):
            a, y = A[i * 60 // count : (i + 1) * 60 // count], labels[i * 60 // count : (i + 1) * 60 // count]
            s = sp.csr_matrix(a)
            matrix = (s.indptr.astype(np.uint64), s.indices.astype(np.uint32), s.data) if held == "sparse" else (a,)
            terms.append(data_term(Rows(matrix, y, 50), losses["logistic"](), count / 60, 0.0 if apart else p.mu))
        p.fs = Shards(terms)
        both.append(p)
    return both


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(
    ("algorithm", "up"),
    [("ef", {"name": "hard-threshold", "threshold": 0.7}), ("ef", {"name": "top-k", "k": 2}), ("sgd", {"name": "identity"}), ("sgd", {"name": "top-k", "k": 2})],
    ids=lambda v: v if isinstance(v, str) else v["name"],
)  # fmt: skip
def test_what_costs_what_it_touches_equals_what_costs_d(algorithm, up, batch):
    sparse, dense = sparse_problem(4)
    runs = [play(p, {"name": algorithm, "batch": batch, "step": 0.3}, up, 400) for p in (sparse, dense)]
    assert np.allclose(runs[0].x, runs[1].x, rtol=1e-9, atol=1e-12)
    for column in {"loss", "grad_norm", "epoch", "error_norm", "total_error", "corrected_norm"} & set(runs[0].trace):
        assert np.allclose(runs[0].trace[column], runs[1].trace[column], rtol=1e-8, atol=1e-12), column


@pytest.mark.parametrize(("threshold", "codec"), [pytest.param(0.7, None, marks=pytest.mark.slow), (1e-12, None), (1e-6, "auto")])
def test_the_followed_size_of_the_error_is_its_size(threshold, codec):
    """Also where nearly all of it is sent in every round, to the last coordinate that a codec then writes densely."""
    sparse, _ = sparse_problem(3)
    method, up = (
        {"name": "ef", "batch": 2 if codec is None else 20, "step": 0.3},
        {"name": "hard-threshold", "threshold": threshold},
    )

    def look(k, node, workers):
        for w in workers.values():
            error, _, _, corrected = w.sizes
            assert error == pytest.approx(w.step**2 * np.sum(w.e**2), rel=1e-7)
            assert error <= w.step**2 * w.e.size * threshold**2
            assert corrected >= 0

    play(sparse, method, up, 3000 if codec is None else 300, look, codec=codec)


@pytest.mark.parametrize("form", ["gradient", "update"])
def test_the_step_of_momentum_takes_the_regulariser_where_x_was(form):
    """x ← x − γ (Δ' + m + µx), the regulariser at the master; with the identity, which leaves no error, both forms alike."""
    p = problem(count=2, mu=0.5, apart=True)
    γ, λ, points = 0.3, 0.9, []
    play(
        p,
        {"name": "ef", "step": γ, "momentum": λ, "form": form},
        {"name": "identity"},
        8,
        lambda k, n, w: points.append(n.x.dense().copy()),
    )
    x, m = np.full(p.dim, 0.1), np.zeros(p.dim)
    for found in points:
        np.testing.assert_allclose(found, x, rtol=1e-12, atol=1e-15)
        g = np.mean([f.value_and_gradient(x)[1] for f in p.fs], axis=0)
        m = λ * m + g
        x = x - γ * (g + m + p.mu * x)


@pytest.mark.parametrize(
    "up", [{"name": "qsgd", "levels": 2}, {"name": "terngrad"}, {"name": "gspar", "kappa": 0.3}, {"name": "top-k", "k": 30}],
    ids=lambda up: up["name"],
)  # fmt: skip
def test_masking_clears_what_was_sent_however_it_is_held(up):
    p, codec = problem(count=1), "auto" if up["name"] == "top-k" else None
    sent = []

    def look(k, node, workers):
        if k == 1:
            sent.append(workers[0].m == 0)

    run = play(p, {"name": "ef", "step": 0.1, "momentum": 0.9, "form": "update", "masking": True}, up, 2, look, codec=codec)
    g = p.fs[0].value_and_gradient(np.full(p.dim, 0.1))[1]
    message = run.method.up.pack(2 * g, Round(0, Streams(0), Role.WORKER, 0))  # Δ = m + g + e with m = g, e = 0
    np.testing.assert_array_equal(sent[0], run.method.up.unpack(message).dense() != 0)


def test_a_regulariser_at_the_master_is_applied_to_a_scalar():
    sparse, _ = sparse_problem(4)
    folded = []
    play(sparse, {"name": "sgd", "batch": 1, "step": 0.9}, {"name": "identity"}, 1500, lambda k, n, w: folded.append(n.x.scale))
    assert min(folded) < 0.1
    assert 1.0 in folded[1:]  # and folded in before it underflows


def test_accordion_sends_k_max_in_the_first_epoch_and_where_gradients_change_fast():
    p = problem()
    algorithm = {"name": "ef", "batch": 5, "sampling": "epoch"}  # 15 rows a worker: epochs of 3 rounds
    done = play(p, algorithm, {"name": "accordion", "k_min": 1, "k_max": 9, "every": 2}, 60)
    sent = np.diff(done.trace["elements_up"]) // p.count
    assert set(sent) == {1, 9}
    assert sent[:3].tolist() == [9, 9, 9]
    assert sent[3:6].tolist() == [1, 1, 1]
    switches = np.flatnonzero(np.diff(sent)) + 1
    assert np.all(switches[1:] % 6 == 0)


def test_accordion_sends_k_max_again_where_the_step_falls():
    p = problem()
    algorithm = {"name": "ef", "step": [[0, "1/L"], [31, "0.1/L"]]}
    done = play(p, algorithm, {"name": "accordion", "k_min": 1, "k_max": 9, "every": 10, "eta": 1e9}, 45)
    sent = np.diff(done.trace["elements_up"]) // p.count
    assert sent.tolist() == [9] + [1] * 30 + [9] * 9 + [1] * 5


def test_logs_of_each_worker_have_the_traces_mean(tmp_path):
    run = run_of(tmp_path, {"name": "ef", "batch": 1}, {"name": "top-k", "k": 4}, rounds=20)
    assert run.workers["error_norm"].shape == (21, 5)
    assert np.allclose(run.trace["error_norm"] ** 2, run.workers["error_norm"].mean(axis=1))
    assert np.allclose(run.trace["total_error"], run.workers["total_error"].mean(axis=1))
    assert run.workers["density"][1:].tolist() == [[0.1] * 5] * 20


def test_logging_less_often_changes_no_number(tmp_path):
    each, seldom = (
        run_of(
            tmp_path / str(every),
            {"name": "ef", "batch": 2},
            {"name": "hard-threshold", "threshold": 0.05},
            rounds=50,
            log={"every": every},
        )
        for every in (1, 20)
    )
    for column in each.trace:
        assert each.trace[column][[0, 20, 40, 50]].tobytes() == seldom.trace[column].tobytes()


def test_hinge_loss_with_error_feedback_comes_near_the_optimum(tmp_path):
    algorithm = {"name": "ef", "step": {"form": "1/t", "a": "2/mu", "b": 50}, "batch": 1, "average": "linear"}
    run = run_of(
        tmp_path, algorithm, {"name": "top-k", "k": 8}, rounds=4000, objective={"loss": "hinge", "mu": 0.1}, log={"every": 1000}
    )
    assert 0 < run.trace["suboptimality"][-1] < 0.02 * run.trace["suboptimality"][0]


def test_a_start_whose_noise_overflows_settles_no_threshold(tmp_path):
    with pytest.raises(UserError, match=r"up.compressor: estimate = true finds .* not finite"):
        run_of(tmp_path, {"name": "ef"}, {"name": "hard-threshold", "like_k": 3, "estimate": True}, start={"offset": 1e200})


@pytest.mark.parametrize("algorithm", [{"name": "ef"}, {"name": "ef", "batch": 2}, {"name": "ef-gdstar"}])
def test_a_step_that_falls_by_more_than_floats_can_square_ends_a_run_and_not_the_program(algorithm):
    steps, up = [[0, 1e160], [5, 1e-10]], {"name": "hard-threshold", "threshold": 1e30}
    with np.errstate(over="ignore", invalid="ignore"):
        run = play(problem(), {**algorithm, "step": steps}, up, 20, x_star=np.zeros(30))
    assert run.verdict is Ending.DIVERGED


def test_a_regime_compares_one_epoch_with_another():
    """Epochs of equal gradients: nothing changes from one to the next, however much was heard in all."""
    regime, parameters = Regime(np.zeros(2)), Accordion(k_min=1, k_max=2, every=1)
    for k in range(6):
        regime.hear(parameters, Dense(np.array([3.0, 4.0])), k, 2, False)
        assert regime.critical == (k == 0)
        assert regime.accumulated.tolist() == ([0.0, 0.0] if k % 2 else [3.0, 4.0])
    assert regime.before == 10.0


def test_a_warm_up_rises_and_falls_by_epochs():
    """HT tables 3 and 6: from 0.1 linearly within 5 epochs, a tenth after 150 and 250."""
    numbers = {"N": 80.0, "n": 4.0, "batch": 6.0}  # 20 rows a worker: 4 rounds an epoch
    step = bind({"form": "warm-up", "a": 1.6, "from": 0.1, "over": 5, "falls": [150, 250]}, numbers)
    assert [step.at(k) for k in (0, 10, 20, 599)] == pytest.approx([0.1, 0.85, 1.6, 1.6])
    assert [step.at(k) for k in (600, 999, 1000)] == pytest.approx([0.16, 0.16, 0.016])
    plain = bind({"form": "warm-up", "a": "2/L", "falls": [3], "by": 4}, NUMBERS)
    assert [plain.at(k) for k in (0, 2, 3)] == [0.5, 0.5, 0.125]


@pytest.mark.parametrize(
    "step",
    [{"a": 1.0, "over": 5}, {"from": 0.1}, {"a": 1.0, "falls": [5, 3]}, {"a": 1.0, "by": 0.5}, {"a": 1.0, "epochs": 5}],
    ids=str,
)
def test_warm_ups_that_make_no_sense_are_refused(step):
    with pytest.raises(UserError, match="γ rises from `from` to a in 5 epochs"):
        algorithms.build({"name": "ef", "step": {"form": "warm-up", **step}}, "algorithm")
