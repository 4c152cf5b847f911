"""CAT's theory beside a run: curves at its own iterates, and table 1's bounds; and the columns of V, by hand and off the counts."""

import numpy as np
import pytest
from helpers.refusals import naming

import mpi_compress as mc
from mpi_compress import UserError
from mpi_compress.cli.show import summary
from mpi_compress.figures import plotting as figures
from mpi_compress.job.loading import parse_job
from mpi_compress.problem.losses import losses
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.rows import Rows
from mpi_compress.problem.second_order import sampling_noise
from mpi_compress.results import bounds
from mpi_compress.results.theorem import summary as of_theorem
from mpi_compress.results.tidy import difference

DATA = {"generator": "gspar", "samples": 120, "dim": 200}
PACKETS = {"model": "packet", "c1": "128 B", "c0": "64 B", "pmax": "128 B"}
RUNS = {
    "GD": ({"name": "gd"}, "identity"),
    "top-7": ({"name": "gd"}, {"name": "top-k", "k": 7}),
    "T = 20": ({"name": "cat", "budget": 20}, {"name": "top-k"}),
    "CAT": ({"name": "cat"}, {"name": "top-k"}),
    "S+Q": ({"name": "cat"}, {"name": "sq"}),
    "Alistarh": ({"name": "cat", "budget": "alistarh"}, {"name": "sq"}),
    "stochastic": ({"name": "cat"}, {"name": "stochastic"}),
}


def described(folder, algorithm, compressor, count=1, rounds=250, mu="1e-2 L", **log):
    tables = {
        "data": DATA, "objective": {"mu": mu}, "algorithm": algorithm, "up": {"compressor": compressor}, "cost": PACKETS,
        "workers": {"count": count}, "stop": {"rounds": rounds}, "log": {"theory": True, **log},
        "run": [{"label": next((n for n, parts in RUNS.items() if parts == (algorithm, compressor)), "other")}],
    }  # fmt: skip
    return parse_job(tables, "theory", folder, {})


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("theory")
    return {name: mc.run(described(folder, *parts), out=folder)[0] for name, parts in RUNS.items()}


def gradient(run, x):
    A, y = mc.datasets.generators["gspar"](samples=120, dim=200).make()
    return A.T @ (-y / (1 + np.exp(y * (A @ x)))) / y.size + run.attrs["mu"] * x


def test_curves_are_those_of_the_gradients_of_the_run(runs):
    for name in ("GD", "S+Q"):
        run = runs[name]
        T = run.attrs["theory_T"]
        assert {1, 10, 100, 200} <= set(T)
        for row, x in ((0, np.zeros(200)), (-1, run.x)):
            a = np.sort(np.abs(gradient(run, x)))[::-1]
            sums, squares = np.cumsum(a)[T - 1], np.cumsum(a**2)[T - 1]
            assert np.allclose(run.theory["alpha"][row], squares / squares[-1], rtol=1e-9)
            assert np.allclose(run.theory["beta"][row], sums**2 / (T * squares[-1]), rtol=1e-9)
            unsaturated = T * a[0] <= sums[-1]  # no p has reached 1: ω(T) = T‖g‖²/‖g‖₁²
            assert unsaturated[0]
            assert np.allclose(run.theory["omega"][row][unsaturated], (T * squares[-1] / sums[-1] ** 2)[unsaturated], rtol=1e-9)


@pytest.mark.parametrize("name", RUNS)
def test_no_run_needs_more_rounds_than_table_1_says(name, runs):
    run = runs[name]
    table = bounds.BoundsTable.of(run)
    assert table.gain >= table.worst_gain * (1 - 1e-12)
    needed, gaps, squares = run.trace["round"], run.trace["suboptimality"], run.trace["grad_norm"] ** 2
    reached = np.minimum.accumulate(gaps), np.minimum.accumulate(squares)
    for kind, by in (("µ-convex", reached[0]), ("convex", reached[0]), ("non-convex", reached[1])):
        for k in range(0, 250, 25):
            plain, data, worst = table.bound(kind, by[k])
            assert np.flatnonzero(by <= by[k])[0] <= data + 1
            assert plain <= data <= worst * (1 + 1e-12)
    assert np.all(run.column("table1")[:-1] + 1 >= needed[:-1])


def test_what_has_no_lemma_has_no_bound(tmp_path):
    refused = [
        ({"name": "ef"}, {"name": "top-k", "k": 5}, 1),
        ({"name": "gd", "step": "0.5/L"}, "identity", 1),
        ({"name": "gd", "regularizer": "master"}, "identity", 1),
        ({"name": "cat"}, {"name": "top-k"}, 3),  # table 1's left half is for one worker
    ]
    for algorithm, compressor, count in refused:
        (run,) = mc.run(described(tmp_path, algorithm, compressor, count, rounds=3), out=tmp_path)
        assert np.all(np.isnan(run.theory["improvement"]))
        assert bounds.BoundsTable.of(run) is None
        assert any("has no bound" in line for line in summary(run))
    (run,) = mc.run(described(tmp_path, {"name": "cat"}, {"name": "stochastic"}, 3, rounds=3), out=tmp_path)
    assert np.all(run.theory["improvement"] > 0)
    assert np.all(run.theory["variance"] > 0)


@pytest.mark.parametrize("sparse", [True, False])
def test_variance_of_one_row_is_that_over_all_rows(sparse):
    rng = np.random.default_rng(3)
    A, y = rng.normal(size=(30, 8)) * (rng.random((30, 8)) < 0.5), rng.choice([-1.0, 1.0], 30)
    if sparse:
        ends = np.r_[0, np.cumsum(np.count_nonzero(A, axis=1))].astype(np.uint64)
        rows = Rows((ends, np.nonzero(A)[1].astype(np.uint32), A[A != 0]), y, 8)
    else:
        rows = Rows((A,), y, 8)
    f = Objective(rows, losses["logistic"](), 1 / 70, 0.3)
    x = rng.normal(size=8)
    g = f.gradient(x).copy()
    each = [np.sum((f.gradient(x, np.array([i], dtype=np.uint64)) - g) ** 2) for i in range(30)]
    assert sampling_noise(f, x) == pytest.approx(np.mean(each), rel=1e-10)


def test_asking_for_theory_changes_no_number_of_the_run(tmp_path):
    for algorithm, compressor in (RUNS["S+Q"], ({"name": "cat", "batch": 9}, {"name": "stochastic"})):
        parts = (algorithm, compressor, 3, 20)
        with_it, without = (mc.run(described(tmp_path, *parts, theory=wanted), out=tmp_path)[0] for wanted in (True, False))
        assert not without.theory
        for column in without.trace:
            assert with_it.trace[column].tobytes() == without.trace[column].tobytes()
        assert list(difference(with_it, without)) != []
        with pytest.raises(UserError, match=r"\[log\] theory = true"):
            without.column("speedup")


def test_theory_is_off_the_clock(tmp_path):
    """Sorting 200,000 coordinates twice a row takes many times what a round of 8 samples does."""
    tables = {
        "data": {"generator": "rcv1-like", "samples": 8, "dim": 200_000}, "algorithm": {"name": "cat"}, "objective": {"mu": "1e-3 L"},
        "stop": {"rounds": 10}, "log": {"theory": True},
    }  # fmt: skip
    (run,) = mc.run(parse_job(tables, "clock", tmp_path, {}), out=tmp_path)
    assert run.timing["evaluate"][-1] > 2 * run.timing["seconds"][-1]


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_growth_is_the_rho_that_the_weak_growth_condition_needs(noise, tmp_path):
    """ρ = E‖g‖²/2L(f − f*) at x_k: below L_row/L_max where x* fits every sample, above it near an x* that does not."""
    spec = {"samples": 80, "dim": 6, "condition": 10.0, "noise": noise}
    tables = {
        "data": {"generator": "least-squares", **spec}, "objective": {"loss": "least-squares"}, "workers": {"count": 2},
        "algorithm": {"name": "iade-sgd", "convexity": 0.1}, "stop": {"rounds": 400}, "log": {"every": 100, "theory": True},
        "run": [{"label": "IADE-SGD"}],
    }  # fmt: skip
    (run,) = mc.run(parse_job(tables, "growth", tmp_path, {}), out=tmp_path)
    A, y = mc.datasets.generators["least-squares"](**spec).make()
    shards = np.split(np.asarray(A), 2)
    L = max(np.linalg.eigvalsh(a.T @ a / len(a))[-1] for a in shards)
    best = np.linalg.lstsq(A, y, rcond=None)[0]
    rho = run.column("rho")[0]
    assert rho * L == pytest.approx(np.max(np.sum(A**2, axis=1)))
    for x, found in ((np.zeros(6), run.column("growth")[0]), (run.x, run.column("growth")[-1])):
        rest, gap = A @ x - y, 0.5 * np.mean((A @ x - y) ** 2 - (A @ best - y) ** 2)
        assert found == pytest.approx(np.mean(np.sum(A**2, axis=1) * rest**2) / (2 * L * gap), rel=1e-6)
    assert (run.column("growth")[-1] > rho) == (noise > 0)
    assert run.column("growth")[0] <= rho
    assert "ρ estimated" in "\n".join(summary(run))


def test_growth_is_not_a_number_where_nothing_is_known_of_the_workers_smoothness(runs):
    assert np.all(np.isnan(runs["GD"].column("growth")))
    assert "ρ estimated" not in "\n".join(summary(runs["GD"]))


def test_show_prints_curves_and_bounds_beside_what_was_needed(runs):
    text = "\n".join(summary(runs["T = 20"]))
    assert "C(T)/ᾱ_T" in text
    assert "ᾱ = " in text
    bounds = [
        line.split() for line in text.splitlines() if line.split() and line.split()[0] in ("µ-convex", "convex", "non-convex")
    ]
    assert {row[0] for row in bounds} == {"µ-convex", "convex", "non-convex"}
    for row in bounds:
        needed, plain, data, worst = (float(v) for v in row[2:])
        assert needed <= data <= worst
        assert plain <= data


def test_figures_draw_curves_bounds_and_what_a_level_took(runs):
    ax = figures.plot([runs["GD"]], x="T", y="predicted_cost,predicted_payload")
    assert len(ax.lines) == 2
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert np.allclose(ax.lines[0].get_ydata(), runs["GD"].column("predicted_cost"))
    ax = figures.plot([runs["CAT"]], x="suboptimality", y="round,table1,table1_gd,table1_worst_case", xscale="log", yscale="log")
    assert len(ax.lines) == 4
    level = float(runs["CAT"].trace["loss"][20])
    ax = figures.plot(list(runs.values())[:4], x="budget", y="cost_up", at={"loss": level})
    lines = {line.get_label(): line for line in ax.lines}
    assert set(lines) == {"GD", "top-7", "T = 20", "CAT"}
    assert lines["CAT"].get_ydata()[0] == runs["CAT"].trace["cost_up"][20]
    row = int(np.argmax(runs["T = 20"].trace["loss"] <= level))
    assert lines["T = 20"].get_xdata().tolist() == [20]
    assert lines["T = 20"].get_ydata().tolist() == [runs["T = 20"].trace["cost_up"][row]]


def test_the_variance_of_a_minibatch_falls_with_its_rows(tmp_path):
    """At the start all runs are at one point; rows are drawn with replacement."""
    first = [
        mc.run(described(tmp_path, {"name": "gd", "batch": batch}, "identity", rounds=1), out=tmp_path)[0].theory["variance"][0]
        for batch in (1, 5)
    ]
    assert first[0] == pytest.approx(5 * first[1], rel=1e-9)


SMALL = {"generator": "gspar", "samples": 60, "dim": 12}
THEORY = {"theory": True}
DIANA = {"algorithm": {"name": "diana"}, "up": {"compressor": {"name": "random-k", "k": 3}}}


def job(folder, log=THEORY, **tables):
    tables = {"data": SMALL, "objective": {"mu": "1e-2 L"}, "workers": {"count": 3}, "stop": {"rounds": 20}, "log": log, **tables}
    return parse_job({"run": [{"label": "run"}], **tables}, "job", folder, {})


def test_columns_of_gradient_descent_are_those_of_the_distance(tmp_path):
    (run,) = mc.run(job(tmp_path, algorithm={"name": "gd"}), out=tmp_path)
    V, distance, ρ = run.trace["lyapunov"], run.trace["distance"], (1 - run.attrs["mu"] / run.attrs["L"]) ** 2
    assert np.allclose(V, distance**2, rtol=1e-12)
    assert np.isnan(run.trace["lyapunov_rate"][0])
    assert np.allclose(run.trace["lyapunov_rate"][1:], V[1:] / V[:-1], rtol=1e-12)
    assert np.allclose(run.trace["lyapunov_bound"], V[0] * ρ ** np.arange(21), rtol=1e-12)


def test_where_some_rounds_have_rows_the_factor_is_that_of_a_round(tmp_path):
    each = {every: mc.run(job(tmp_path, {**THEORY, "every": every}, **DIANA), out=tmp_path / str(every))[0].trace for every in (1, 5)}
    for name in ("lyapunov", "lyapunov_bound"):
        assert np.allclose(each[1][name][::5], each[5][name], rtol=1e-12)
    V = each[1]["lyapunov"]
    assert np.allclose(each[5]["lyapunov_rate"][1:], (V[5::5] / V[:-5:5]) ** 0.2, rtol=1e-12)


@pytest.mark.parametrize("name", ["diana", "marina", "gd"])
def test_v_changes_no_other_column(name, tmp_path):
    tables = {"algorithm": {"name": name}} if name == "gd" else {**DIANA, "algorithm": {"name": name}}
    (seen,), (unseen,) = (mc.run(job(tmp_path, log, **tables), out=tmp_path / str(len(log))) for log in (THEORY, {}))
    added = {"lyapunov", "lyapunov_rate", "lyapunov_bound"}
    assert seen.trace.keys() - unseen.trace.keys() <= added | {"distance"}
    assert all(np.array_equal(seen.trace[column], unseen.trace[column], equal_nan=True) for column in unseen.trace)
    assert np.array_equal(seen.x, unseen.x)
    assert not [key for key in unseen.attrs if "lyapunov" in key]


def test_show_has_the_worst_factor_beside_the_theorems_and_seeds_are_judged_by_their_mean(tmp_path, capsys):
    (exact,) = mc.run(job(tmp_path, algorithm={"name": "gd"}), out=tmp_path)
    (line,) = [line for line in summary(exact) if line.startswith("  lyapunov")]
    worst, ρ = np.nanmax(exact.trace["lyapunov_rate"]), (1 - exact.attrs["mu"] / exact.attrs["L"]) ** 2
    assert f"{worst:.6g}," in line
    assert line.endswith(f"{ρ:.6g}: holds")
    runs = mc.run(job(tmp_path, grid={"seed": [1, 2, 3, 4]}, **DIANA), out=tmp_path)
    (line,) = of_theorem(runs)
    mean = np.mean([run.trace["lyapunov_rate"][1:] for run in runs], axis=0).max()
    assert f"{mean:.6g} ± " in line
    assert line.endswith(": holds")
    assert next(of_theorem(runs[:1])).endswith("about the mean over seeds")


def test_show_judges_no_v_that_is_0_and_tells_factors_from_1(tmp_path):
    (newton,) = mc.run(job(tmp_path, objective={"loss": "least-squares", "mu": "1e-2 L"}, algorithm={"name": "fednl"}), out=tmp_path)
    assert next(of_theorem([newton])) == "not judged: V is 0 in every record, up to rounding"
    (slow,) = mc.run(job(tmp_path, objective={"mu": "1e-8 L"}, algorithm={"name": "gd"}), out=tmp_path)
    assert "the theorem's 1 − 2e-08: holds" in next(of_theorem([slow]))


def test_a_figure_of_v_has_the_theorems_line(tmp_path):
    (run,) = mc.run(job(tmp_path, algorithm={"name": "gd"}), out=tmp_path)
    drawn = figures.plot([run], x="round", y="lyapunov")
    lines = [line.get_ydata() for line in drawn.lines]
    assert any(np.array_equal(line, run.trace["lyapunov_bound"]) for line in lines)


def test_a_run_without_v_says_why_and_is_refused_where_its_job_asks_for_v(tmp_path):
    (run,) = mc.run(job(tmp_path, algorithm={"name": "ef"}, up={"compressor": {"name": "top-k", "k": 3}}), out=tmp_path)
    assert "lyapunov" not in run.trace
    assert any("one worker and step" in line for line in summary(run))
    with pytest.raises(UserError, match=naming("log.theory lyapunov diana theory")):
        mc.run(job(tmp_path, figure={"y": "lyapunov"}, **{**DIANA, "algorithm": {"name": "diana", "step": "3 theory"}}), out=tmp_path)
