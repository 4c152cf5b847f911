"""EF21 and its kin, DASHA, PAGE, EControl, DoubleSqueeze, EF21-P: their theorems, where they coincide, and plain loops beside them."""

import json

import numpy as np
import pytest
from helpers import plain_literature as plain
from helpers.plain_ef import shards
from helpers.plays import optimum, play, problem, start
from helpers.running import run_of

from mpi_compress import UserError
from mpi_compress.algorithms.parts import dense
from mpi_compress.core.streams import Role

TOP, RANDOM, EXACT = {"name": "top-k", "k": 3}, {"name": "random-k", "k": 3}, {"name": "identity"}
WHOLE_EPOCH = {"batch": 6, "sampling": "epoch"}  # of 24 rows by 4 workers: every minibatch is all of a shard


def small(**more):
    return problem(**{"samples": 24, "dim": 12, "mu": 0.1, **more})


def iterates(p, algorithm, up, rounds, **setting):
    """The points of a run as rows, and the bound algorithm."""
    points = []
    method = play(p, algorithm, up, rounds, lambda k, node, workers: points.append(np.array(dense(node.x))), **setting).method
    return np.array(points), method


def name_of(value):
    return " ".join(map(str, value.values())) if isinstance(value, dict) else None


STEPS = [
    ({"name": "ef21", "first": "gradient"}, TOP), ({"name": "ef21-sgdm"}, TOP), ({"name": "econtrol"}, TOP), ({"name": "dasha"}, RANDOM),
    ({"name": "dasha-page", "batch": 2}, RANDOM), ({"name": "dasha-mvr", "batch": 2}, RANDOM), ({"name": "page", "batch": 2}, EXACT),
    ({"name": "page", "batch": 2}, RANDOM),
]  # fmt: skip


@pytest.mark.parametrize(("algorithm", "up"), STEPS, ids=name_of)
def test_with_its_theorems_step_the_mean_square_of_the_gradients_is_bounded_at_every_round(algorithm, up):
    """(1/T) Σ E‖∇f(x_k)‖² ≤ 2 (f(x_0) − E f(x_T))/(γT), after dense first messages; E by the mean of a few runs."""
    p = small()
    runs = [play(p, algorithm, up, 80, seed=seed) for seed in range(1 if up is TOP else 3)]
    γ = runs[0].method.step
    squares, loss = (np.mean([r.trace[c] ** e for r in runs], axis=0) for c, e in (("grad_norm", 2), ("loss", 1)))
    assert np.all(np.cumsum(squares)[:-1] <= 2 * (loss[0] - loss[1:]) / γ)
    assert runs[0].trace["elements_up"][1] == p.count * p.dim


@pytest.mark.parametrize(
    ("algorithm", "up", "rounds"),
    [({"name": "ef21", "first": "gradient"}, TOP, 300), ({"name": "dasha"}, RANDOM, 400), ({"name": "dasha", "first": "compressed"}, RANDOM, 400), ({"name": "page", "batch": 2}, EXACT, 150)],
    ids=name_of,
)  # fmt: skip
def test_methods_without_noise_reach_the_optimum_with_their_theorems_steps(algorithm, up, rounds):
    p = small(mu=0.7)
    _, f_star = optimum(p)
    gaps = play(p, algorithm, up, rounds).trace["loss"] - f_star
    assert gaps[-1] < 1e-6 * gaps[0]


@pytest.mark.parametrize("name", ["ef21", "marina", "diana", "gd", "ef", "iade"])
def test_a_step_names_the_theorems(name):
    """`theory` is a name in formulas: the default of methods whose default is their theorem's."""
    p, up = small(), {"ef21": TOP, "gd": EXACT, "ef": TOP, "iade": {"name": "lattice"}}.get(name, RANDOM)
    default, four = (
        play(p, {"name": name, **more}, up, 0, down=EXACT if name == "iade" else None).method.step
        for more in ({}, {"step": "4 theory" if name != "iade" else "theory"})
    )
    assert four == pytest.approx({"ef": 1 / p.numbers["L_max"], "iade": default}.get(name, 4 * default), rel=1e-12)


def test_schedules_name_the_theorems_step_too():
    p = small()
    γ = play(p, {"name": "dasha"}, RANDOM, 0).method.step
    method = play(p, {"name": "dasha", "step": [[0, "theory"], [9, "2 theory"]]}, RANDOM, 0).method
    assert [method.gamma(k) for k in (0, 8, 9)] == [γ, γ, 2 * γ]


def test_the_theorems_step_needs_what_its_formula_names(tmp_path):
    with pytest.raises(UserError, match=r"'4 theory' .* δ .* such as top-k"):
        run_of(tmp_path, {"name": "ef21", "step": "4 theory"}, {"name": "hard-threshold", "threshold": 1.0})
    with pytest.raises(UserError, match="'theory/2' names the step of a theorem, and this method states none"):
        run_of(tmp_path, {"name": "sgd", "step": "theory/2"}, TOP)
    with pytest.raises(UserError, match=r"algorithm.step: '2 theory' .*L, .*hinge"):
        run_of(tmp_path, {"name": "gd", "step": "2 theory"}, TOP, objective={"loss": "hinge", "mu": 0.1})


@pytest.mark.parametrize(
    "algorithm",
    [
        {"name": "ef21", "first": "gradient"}, {"name": "dasha", "first": "compressed"}, {"name": "dasha", "a": 0.4},
        {"name": "dasha-page", "p": 1.0}, {"name": "page", "p": 1.0},
    ],
    ids=name_of,
)
def test_with_exact_links_and_full_gradients_it_is_gradient_descent(algorithm):
    """Settings beside those of `test_products`, where each estimator is."""
    p = small()
    one, _ = iterates(p, {"name": "gd"}, EXACT, 40)
    other, _ = iterates(p, {**algorithm, "step": "1/L"}, EXACT, 40)
    np.testing.assert_allclose(other, one, rtol=0, atol=1e-12)


PAIRS = {
    "momentum of weight 1 is EF21": ({"name": "ef21-sgdm", "eta": 1.0}, {"name": "ef21", "first": "gradient"}, TOP, {}),
    "control 0 is EF21": ({"name": "econtrol", "eta": 0.0}, {"name": "ef21", "first": "gradient"}, TOP, {}),
    "control without an error is EF21": ({"name": "econtrol", "eta": 0.7}, {"name": "ef21", "first": "gradient"}, EXACT, {}),
    "only full rounds are DASHA": ({"name": "dasha-page", "p": 1.0}, {"name": "dasha"}, RANDOM, {}),
    "DASHA-PAGE by whole shards is DASHA": ({"name": "dasha-page", "p": 0.3, **WHOLE_EPOCH}, {"name": "dasha"}, RANDOM, {}),
    "DASHA-MVR by whole shards is DASHA": ({"name": "dasha-mvr", "b": 0.3, **WHOLE_EPOCH}, {"name": "dasha"}, RANDOM, {}),
    "PAGE by whole shards is MARINA": ({"name": "page", "p": 0.3, **WHOLE_EPOCH}, {"name": "marina", "p": 0.3}, RANDOM, {}),
    "an exact downlink is error feedback": ({"name": "double-squeeze", "batch": 2}, {"name": "ef", "batch": 2}, TOP, {}),
    "an exact uplink is EF21-P": ({"name": "ef21-p-diana", "beta": 0.5}, {"name": "ef21-p"}, EXACT, {"down": TOP}),
}


@pytest.mark.parametrize("case", PAIRS)
def test_iterate_by_iterate(case):
    one, other, up, links = PAIRS[case]
    p = small()
    (a, _), (b, _) = (iterates(p, {**algorithm, "step": "0.1/L"}, up, 60, **links) for algorithm in (one, other))
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


def plain_case(name, p, γ):
    """What a plain loop gives for the runs below."""
    f, x, T = shards(p), start(p), 60
    top, random, rows = plain.drawn(TOP), plain.drawn(RANDOM), plain.batches(f, 2)
    down = plain.drawn(TOP, role=Role.MASTER)
    return {
        "ef21": lambda: plain.ef21(f, x, top, γ, T, rows=rows),
        "ef21, whole start": lambda: plain.ef21(f, x, top, γ, T, "gradient", rows),
        "ef21-sgdm": lambda: plain.ef21(f, x, top, γ, T, "gradient", rows, η=0.3),
        "econtrol": lambda: plain.econtrol(f, x, top, γ, T, 0.2, rows),
        "dasha": lambda: plain.dasha(f, x, random, γ, T, 1 / 7),
        "dasha-page": lambda: plain.dasha(f, x, random, γ, T, 1 / 7, rows, full=plain.coins(0.25, T)),
        "dasha-mvr": lambda: plain.dasha(f, x, random, γ, T, 1 / 7, rows, b=1 / 16),
        "page": lambda: plain.page(f, x, random, γ, T, rows, plain.coins(0.25, T)),
        "double-squeeze": lambda: plain.double_squeeze(f, x, top, down, γ, T, rows)[0],
    }[name]()


@pytest.mark.parametrize(
    ("algorithm", "up", "down"),
    [
        ({"name": "ef21", "batch": 2}, TOP, None),
        ({"name": "ef21", "batch": 2, "first": "gradient"}, TOP, None),
        ({"name": "ef21-sgdm", "batch": 2, "eta": 0.3}, TOP, None),
        ({"name": "econtrol", "batch": 2, "eta": 0.2}, TOP, None),
        ({"name": "dasha"}, RANDOM, None),
        ({"name": "dasha-page", "batch": 2}, RANDOM, None),
        ({"name": "dasha-mvr", "batch": 2}, RANDOM, None),
        ({"name": "page", "batch": 2}, RANDOM, None),
        ({"name": "double-squeeze", "batch": 2}, TOP, TOP),
    ],
    ids=name_of,
)
def test_iterates_are_those_of_a_plain_loop(algorithm, up, down):
    p = small()
    xs, method = iterates(p, {**algorithm, "step": "0.1/L"}, up, 60, down=down)
    name = algorithm["name"] + (", whole start" if algorithm == {"name": "ef21", "batch": 2, "first": "gradient"} else "")
    np.testing.assert_allclose(xs, plain_case(name, p, method.step), rtol=0, atol=1e-10)


SOME = {
    "marina-pp": lambda f, x, Q, γ, seen: plain.marina_pp(f, x, Q, γ, 60, plain.coins(2 / 16, 60), 2, seen),
    "dasha-pp": lambda f, x, Q, γ, seen: plain.dasha_pp(f, x, Q, γ, 60, 1 / 7, 2 / 6, 2, seen),
}


@pytest.mark.parametrize("r", [1, 2, None])
@pytest.mark.parametrize("name", SOME)
def test_with_some_of_the_workers_the_theorems_bound_holds_at_every_round(name, r):
    p = small()
    runs = [play(p, {"name": name}, RANDOM, 80, seed=seed, participants=r) for seed in range(3)]
    γ = runs[0].method.step
    squares, loss = (np.mean([r.trace[c] ** e for r in runs], axis=0) for c, e in (("grad_norm", 2), ("loss", 1)))
    assert np.all(np.cumsum(squares)[:-1] <= 2 * (loss[0] - loss[1:]) / γ)


@pytest.mark.parametrize("name", SOME)
def test_with_some_of_the_workers_iterates_are_those_of_a_plain_loop(name):
    p = small()
    xs, method = iterates(p, {"name": name, "step": "0.1/L"}, RANDOM, 60, participants=2)
    drawn = SOME[name](shards(p), start(p), plain.drawn(RANDOM), method.step, lambda k: plain.participants(4, 2, k))
    np.testing.assert_allclose(xs, drawn, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("name", "whole"), [("marina-pp", "marina"), ("dasha-pp", "dasha")])
def test_with_all_workers_partial_participation_is_the_method_itself(name, whole):
    p = small()
    (a, _), (b, _) = (iterates(p, {"name": each, "step": "0.1/L"}, RANDOM, 60) for each in (name, whole))
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


def test_ef21_with_a_whole_start_begins_with_all_workers():
    p = small()
    sent = play(p, {"name": "ef21", "first": "gradient"}, TOP, 3, participants=1).trace["elements_up"]
    assert np.diff(sent).tolist() == [p.count * p.dim, 3, 3]


def test_econtrol_keeps_in_its_errors_what_it_has_not_sent():
    """x − γ mean e_i = x_0 − γ Σ mean ∇f_i(x; ξ), at every round."""
    p, seen = small(), []
    γ = play(
        p, {"name": "econtrol"}, TOP, 60, lambda k, n, w: seen.append((n.x.copy(), np.mean([v.e for v in w.values()], axis=0)))
    ).method.step
    expected = start(p)
    for x, e in seen:
        np.testing.assert_allclose(x - γ * e, expected, rtol=0, atol=1e-14)
        expected = expected - γ * np.mean([f.value_and_gradient(x)[1] for f in p.fs], axis=0)


def test_double_squeeze_keeps_in_both_memories_what_was_not_sent_and_its_floor_falls_with_the_square_of_the_step():
    p = small(mu=0.3)
    _, f_star = optimum(p)
    f, γ = shards(p), 0.5 / p.numbers["L"]
    xs, virtual = plain.double_squeeze(f, start(p), plain.drawn(TOP), plain.drawn(TOP, role=Role.MASTER), γ, 100)
    steps = [γ * np.mean([f.gradient(i, x) for i in range(f.n)], axis=0) for x in xs[:-1]]
    np.testing.assert_allclose(virtual[1:], start(p) - np.cumsum(steps, axis=0), rtol=0, atol=1e-13)
    floors = [
        play(p, {"name": "double-squeeze", "step": f"{share}/L"}, TOP, rounds, down=TOP).trace["loss"][-100:].mean() - f_star
        for share, rounds in ((0.4, 200), (0.1, 400))
    ]
    assert 0 < floors[1] < floors[0] / 8


@pytest.mark.parametrize(("algorithm", "up"), [({"name": "ef21-p"}, EXACT), ({"name": "ef21-p-diana"}, RANDOM)], ids=name_of)
def test_ef21_p_converges_by_its_rate(algorithm, up):
    """‖w − x*‖² ≤ (1 − γµ/2)^k ‖x_0 − x*‖² · 1.1 on a strongly convex problem, in the mean over a few runs."""
    p = small(mu=1.0)
    x_star, _ = optimum(p)
    runs = [iterates(p, algorithm, up, 150, down=TOP, seed=seed) for seed in range(2)]
    squares, γ = np.mean([np.sum((xs - x_star) ** 2, axis=1) for xs, _ in runs], axis=0), runs[0][1].step
    assert np.all(squares <= 1.1 * squares[0] * (1 - γ * p.mu / 2) ** np.arange(151))
    assert squares[-1] < 0.8 * squares[0]


def test_the_steps_of_ef21_p_are_its_theorems():
    p = small()
    L, L_max, n, δ, ω = p.numbers["L"], p.numbers["L_max"], 4, 0.25, 3.0
    assert play(p, {"name": "ef21-p"}, EXACT, 0, down=TOP).method.step == pytest.approx(δ / (16 * L))
    parts = (n / (160 * ω * L_max), np.sqrt(n * δ) / (20 * np.sqrt(ω) * L_max), δ / (100 * L), 1 / ((ω + 1) * p.mu))
    assert play(p, {"name": "ef21-p-diana"}, RANDOM, 0, down=TOP).method.step == pytest.approx(min(parts))


def test_proximal_ef21_reaches_the_lasso_of_proximal_gradient_descent(tmp_path):
    lasso = {"mu": "0.2 L", "penalty": {"name": "l1", "weight": 0.02}, "f_star": "skip"}
    runs = [
        run_of(tmp_path / algorithm["name"], algorithm, up, objective=lasso, rounds=rounds, log={"every": rounds})
        for algorithm, up, rounds in (({"name": "ef21", "first": "gradient"}, {"name": "top-k", "k": 30}, 500), ({"name": "gd"}, None, 200))
    ]  # fmt: skip
    assert runs[0].trace["grad_norm"][-1] < 1e-8 * runs[0].trace["grad_norm"][0]  # ‖x − prox(x − γ∇f)‖/γ
    np.testing.assert_allclose(runs[0].x, runs[1].x, rtol=0, atol=1e-9)
    assert 0 < np.count_nonzero(runs[0].x) < runs[0].x.size
    exact = run_of(tmp_path / "exact", {"name": "ef21", "step": "1/L"}, {"name": "identity"}, objective=lasso, rounds=40)
    descent = run_of(tmp_path / "descent", {"name": "gd"}, None, objective=lasso, rounds=40)
    np.testing.assert_allclose(exact.trace["loss"], descent.trace["loss"], rtol=1e-12)


def test_proximal_ef21_takes_twice_the_workers_smoothness_in_its_step(tmp_path):
    settled = []
    for penalty in ({}, {"penalty": {"name": "l1", "weight": 0.02}}):
        run = run_of(
            tmp_path,
            {"name": "ef21"},
            {"name": "top-k", "k": 10},
            objective={"mu": "1e-2 L", "f_star": "skip", **penalty},
            rounds=1,
        )
        settled.append(1 / json.loads(run.attrs["settled"])["step"] - run.attrs["L"])
    assert settled[1] == pytest.approx(2 * settled[0], rel=1e-12)


UNAPPLIED = [({"name": "ef21"}, "ratio", 'regularizer = "worker"')]
UNAPPLIED += [({"name": "gd", "server": s, "step": 0.1}, "l1", f"the server {s} does not apply") for s in ("heavy-ball", "l-bfgs")]


@pytest.mark.parametrize(("algorithm", "penalty", "says"), UNAPPLIED)
def test_a_penalty_that_no_step_applies_is_refused(algorithm, penalty, says, tmp_path):
    objective = {"penalty": {"name": penalty, "weight": 0.1}, "regularizer": "master"}
    with pytest.raises(UserError, match=says):
        run_of(tmp_path, algorithm, TOP, objective=objective)
