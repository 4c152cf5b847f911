"""Bounds that papers print, by hand: CAT's table 1, and what IADE, AIADE and IADE-SGD allow their messages to lose."""

from math import inf, log, log2, nan, sqrt
from pathlib import Path

import numpy as np
import pytest
from helpers.plays import optimum, play, problem, start

import mpi_compress as mc
from mpi_compress.results.bounds import BoundsTable, summary

LATTICE, BOUND = {"name": "lattice"}, {"name": "lattice", "range": "bound"}


def described(curve="alpha", mu=0.5, f_star=1.0, improvement=(0.4, 0.2, 0.25, nan), variance=(0.03, 0.06, 0.0, 0.0), **more):
    """A result of four rows with L = 2, ε0 = 8, R = 3; the last row is not before a round."""
    rows = 4
    theory = {name: np.full((rows, 3), 0.3) for name in ("alpha", "beta", "omega")}
    theory |= {"improvement": np.array(improvement), "variance": np.array(variance)}
    trace = {
        "round": np.arange(rows), "loss": np.array([9.0, 5.0, 2.0, 1.5]), "suboptimality": np.array([8.0, 4.0, 1.0, 0.5]),
        "grad_norm": np.array([4.0, 2.0, 1.0, 0.1]), "distance": np.array([2.0, 3.0, 1.0, 0.5]), "elements_up": np.array([0, 5, 10, 15]),
        "paper_bits_up": np.array([0.0, 60, 130, 210]), "cost_up": np.array([0.0, 80, 160, 270]),
    } | more  # fmt: skip
    attrs = {
        "label": "made up", "status": "complete", "L": 2.0, "mu": mu, "f_star": f_star, "curve": curve, "dim": 50, "n_workers": 1,
        "theory_T": np.array([1, 5, 50]), "theory_payload": np.array([70.0, 350.0, 3500.0]), "theory_cost": np.array([80.0, 360.0, 3510.0]),
    }  # fmt: skip
    return mc.Run(Path("made-up.h5"), attrs, trace, {}, {"seconds": np.zeros(rows)}, None, theory)


KINDS = {
    "µ-convex": lambda ε, noise, δ: noise(0.5 * ε * 2) * 4 * (log(8 / ε) + δ),  # κ = 2/0.5
    "convex": lambda ε, noise, δ: noise(ε * 2) * 2 * 2 * 3**2 / ε,
    "non-convex": lambda ε, noise, δ: noise(ε) * 2 * 2 * 8 / ε,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("eps", [4.0, 0.01])
def test_the_left_half_of_table_1(kind, eps):
    """κ log(ε0/ε), 2LR²/ε and 2Lε0/ε; over the least improvement, 0.2, and times d/T = 10."""
    bound = BoundsTable.of(described()).bound(kind, eps)
    plain = KINDS[kind](eps, lambda scale: 1.0, 0.0)
    assert bound == pytest.approx((plain, plain / 0.2, plain * 10), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("eps", [4.0, 0.01])
def test_the_right_half_of_table_1(kind, eps):
    """2(1 + 2σ²/(µεL))(κ log(ε0/ε) + κ log 2), 2(1 + 2σ²/(εL)) 2LR²/ε and 2(1 + 2σ²/ε) 2Lε0/ε with the largest σ² = 0.06."""
    bound = BoundsTable.of(described("omega")).bound(kind, eps)
    plain = KINDS[kind](eps, lambda scale: 2 * (1 + 2 * 0.06 / scale), log(2))
    assert bound == pytest.approx((plain, plain / 0.2, plain * 10), rel=1e-12)


def test_the_worst_case_of_signs_is_the_smaller_of_1_over_t_and_t_over_d():
    for elements, worst in ((5, 5 / 50), (15, 1 / 15)):
        run = described("beta", elements_up=elements * np.arange(4))
        assert BoundsTable.of(run).worst_gain == pytest.approx(worst)
    assert BoundsTable.of(described("alpha", elements_up=15 * np.arange(4))).worst_gain == pytest.approx(15 / 50)


def test_the_columns_of_table_1_are_the_smaller_bound_to_the_suboptimality_of_each_row():
    for run, factor, δ in ((described(), lambda s: 1.0, 0.0), (described("omega"), lambda s: 2 * (1 + 2 * 0.06 / s), log(2))):
        plain = [0.0 if ε > 8 else min(KINDS[kind](ε, factor, δ) for kind in ("µ-convex", "convex")) for ε in (8.0, 4.0, 1.0, 0.5)]
        assert run.column("table1_gd") == pytest.approx(plain, rel=1e-12)
        assert run.column("table1") == pytest.approx(np.array(plain) / 0.2, rel=1e-12)
        assert run.column("table1_worst_case") == pytest.approx(np.array(plain) * 10, rel=1e-12)
    convex = described(mu=0.0)
    assert convex.column("table1_gd") == pytest.approx([36 / ε for ε in (8.0, 4.0, 1.0, 0.5)])
    beyond = described(loss=np.array([9.0, 12.0, 2.0, 1.5]), suboptimality=np.array([8.0, 11.0, 1.0, -1e-17]))
    assert beyond.column("table1_gd")[1] == 0.0, "it is reached before the first round"
    assert np.isnan(beyond.column("table1_gd")[3])


def test_without_f_star_the_start_is_the_loss_itself():
    assert BoundsTable.of(described(f_star=nan)).bound("non-convex", 1.0)[0] == pytest.approx(2 * 2 * 9)
    assert all(BoundsTable.of(described(curve, mu=0.0)).bound("µ-convex", 1.0)[0] == inf for curve in ("alpha", "omega"))
    assert BoundsTable.of(described(improvement=(nan,) * 4)) is None


def test_curves_over_budgets_are_the_least_over_rows():
    run = described()
    run.theory["alpha"][:] = [[0.1, 0.5, 1.0], [0.2, 0.4, 1.0], [nan, nan, nan], [0.3, 0.6, 1.0]]
    assert run.column("alpha_bar").tolist() == [0.1, 0.4, 1.0]
    assert run.column("speedup") == pytest.approx([5.0, 4.0, 1.0])
    assert run.column("predicted_cost") == pytest.approx([800.0, 900.0, 3510.0])
    assert run.column("predicted_payload") == pytest.approx([700.0, 875.0, 3500.0])
    assert run.column("payload_sent") == pytest.approx([70.0] * 3), "210 bits in three rounds of one worker"
    assert run.column("cost_sent") == pytest.approx([90.0] * 3)


def test_the_precision_of_iade_sgd_is_half_of_its_bound_on_the_square():
    """ε_k = ρ²L²s c'^(k+1)/2 in each direction, E‖v − ∇f‖² ≤ 2ε_k = ρ²L²s c'^(k+1)."""
    p = problem(mu=0.1)
    ρ, L, s, c = 2.5, p.numbers["L_max"], 0.7, 0.999
    method = play(p, {"name": "iade-sgd", "rho": ρ, "level": s, "rate": c}, LATTICE, 0, codec="lattice", down=LATTICE).method
    for k in (0, 1, 9):
        ε = ρ**2 * L**2 * s * c ** (k + 1) / 2
        node = method.start(start(p))
        for link in (method.uplink(node, k), method.downlink(node, k)):
            assert link.compressor.sigma == pytest.approx(sqrt(ε), rel=1e-12)
            assert link.compressor.stochastic
        assert method.budget(k) == pytest.approx(sqrt(2 * ε), rel=1e-12)
    η, cc = 1 / (ρ * L), 1 - p.mu / (ρ * L)
    assert method.step == pytest.approx(η)
    settled = s * c / (c - cc)
    for k, r in ((0, 2.0), (3, 2.0), (5, 0.01)):
        assert method.bound(k, r) == pytest.approx(sqrt(c**k * (max(0.0, r**2 - settled) + settled)), rel=1e-12)


@pytest.mark.parametrize("name", ["iade", "dqgd"])
def test_the_precision_and_the_bound_of_iade(name):
    """σ_k = s c'^(k+1)/2, DQGD's twice that; ‖x_k − x*‖ ≤ c'^k ξ."""
    p = problem(mu=0.1)
    L, s, c = p.numbers["L_max"], 3.0, 0.995
    down = None if name == "dqgd" else LATTICE
    method = play(p, {"name": name, "level": s, "rate": c}, LATTICE, 0, codec="lattice", down=down).method
    η = 2 / (L + p.mu)
    settled = η * s * c / (c - (1 - η * p.mu))
    for k in (0, 4):
        assert method.uplink(method.start(start(p)), k).compressor.sigma == pytest.approx(s * c ** (k + 1) / (1 if name == "dqgd" else 2))
        for r in (0.5, 50.0):
            assert method.bound(k, r) == pytest.approx(c**k * (max(0.0, r - settled) + settled), rel=1e-12)


def test_the_precision_and_the_bound_of_aiade():
    """σ_k = ε c^(k+1)/(2k + 2), c = √(1 − √(µ/L)); Δ_(k+1) = Δ_k + 3l√(2Δ_k/L)/c + 5l√(2Δ_k/µ)/c + l²/L with l = ε/(k + 1)."""
    p = problem(mu=0.1)
    L, µ, ε = p.numbers["L_max"], p.mu, 0.8
    method = play(p, {"name": "aiade", "level": ε}, LATTICE, 0, codec="lattice", down=LATTICE).method
    c = sqrt(1 - sqrt(µ / L))
    for k in (0, 1, 6):
        assert method.uplink(method.start(start(p)), k).compressor.sigma == pytest.approx(ε * c ** (k + 1) / (2 * k + 2), rel=1e-12)
    Δ = (L + µ) / 2 * 1.5**2
    for k in range(6):
        assert method.bound(k, 1.5) == pytest.approx(c**k * sqrt(2 * Δ / µ), rel=1e-12)
        l = ε / (k + 1)
        Δ = Δ + 3 * l * sqrt(2 * Δ / L) / c + 5 * l * sqrt(2 * Δ / µ) / c + l**2 / L


def test_a_range_that_both_ends_know_is_what_the_gradient_moved_and_one_or_three_precisions():
    """M = L‖x_k − x_(k−1)‖ + σ_(k−1) up and + 3σ_(k−1) down, rounded up to 7 binary digits; the trace has log2(M/σ)."""
    p, points = problem(mu=0.1), []
    c = 0.97
    done = play(
        p, {"name": "iade", "level": 5.0, "rate": c, "step": "1/L_max", "convexity": 0.5}, BOUND, 12,
        lambda k, node, workers: points.append(node.x.copy()), codec="lattice", down=BOUND, x_star=optimum(p)[0],
    )  # fmt: skip
    for k in range(1, 12):
        σ, before = (5.0 * c ** (j + 1) / 2 for j in (k, k - 1))
        moved = p.numbers["L_max"] * np.linalg.norm(points[k] - points[k - 1])
        for way, share in (("up", 1), ("down", 3)):
            M = 2 ** done.trace[f"lower_{way}"][k + 1] * σ
            wanted = moved + share * before
            assert wanted * (1 - 1e-12) <= M <= wanted * (1 + 1 / 64), (k, way)
            assert done.trace[f"lower_{way}"][k + 1] == pytest.approx(log2(M / σ))


@pytest.mark.parametrize(("d", "budgets"), [(50, [1, 10, 50]), (100, [1, 10, 100]), (7, [1, 7])])
def test_show_has_curves_at_powers_of_ten_and_at_d(d, budgets):
    run = described()
    T = np.unique([1, *[t for t in (5, 10) if t < d], d])
    run.attrs.update(dim=d, theory_T=T, theory_payload=70.0 * T, theory_cost=70.0 * T + 10)
    run.theory.update({name: np.full((4, T.size), 0.3) for name in ("alpha", "beta", "omega")})
    lines = [line.split() for line in summary(run)]
    assert [int(line[0]) for line in lines if len(line) == 6 and line[0].isdigit()] == budgets
