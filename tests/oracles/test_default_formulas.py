"""Every default formula at settings that make each of its branches the active one: what the papers' theorems give, by hand."""

from math import sqrt
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.plays import bound

from mpi_compress.algorithms import algorithms
from mpi_compress.algorithms.steps import formulas_of, takes_theorem_step

L, L_MAX, L_MEAN, L_RMS, L_ROW, MU, G0 = 2.0, 3.0, 2.25, 2.5, 7.0, 0.1, 5.0


def top(k):
    return {"name": "top-k", "k": k}


def random(k):
    return {"name": "random-k", "k": k}


def perm(n):
    return {"name": "perm-k", "n": n}


def pattern(s, n=4):
    return {"name": "pattern", "s": s, "n": n}


EXACT, TOP = {"name": "identity"}, {"name": "top-k"}
LATTICE = {"name": "lattice"}
LINK = {"name": "trace", "rows": [[0, "1 ms", "1 kbit/s"]]}


def settled(algorithm, up=EXACT, n=4, d=12, N=24, mu=MU, L=L, **setting):
    """An algorithm in a setting of these numbers, whatever the problem."""
    gradient = np.eye(1, d)[0] * G0
    f = SimpleNamespace(value_and_gradient=lambda x: (0.0, gradient))
    numbers = {"rounds": 99, "L": L, "L_max": L_MAX, "L_mean": L_MEAN, "L_rms": L_RMS, "L_pm": L_RMS, "L_row": L_ROW, "mu": mu, "n": n, "d": d, "N": N, "kappa": L / mu if mu else np.inf}
    p = SimpleNamespace(count=n, dim=d, apart=0.0, numbers={key: float(value) for key, value in numbers.items()}, fs=[f])
    return bound(p, algorithm, up, **setting)


S, W = sqrt(3 / 4), 3.0  # √(1 − δ) and ω, where 3 of 12 coordinates are sent
W9 = 1 / 3  # ω where 9 of them are sent

CASES = [
    # gradient descent and its kin
    ("gd", {}, EXACT, {}, {"step": 1 / L}),
    ("sgd", {"batch": 2}, EXACT, {}, {"step": 1 / L}),
    ("cat", {}, TOP, {}, {"step": 1 / L}),
    ("nesterov", {}, EXACT, {}, {"step": 1 / L}),
    ("adef", {}, EXACT, {}, {"step": 1 / L}),
    ("adef", {}, TOP, {}, {"step": 1 / L}),
    ("local-sgd", {"local_steps": 1}, EXACT, {}, {"step": 1 / (4 * L_MAX)}),
    ("local-sgd", {"local_steps": 5}, EXACT, {}, {"step": 1 / (8 * L_MAX * 4)}),
    ("svrg", {}, EXACT, {}, {"step": 0.1 / L_ROW}),
    ("adam", {}, EXACT, {}, {"step": 1e-3}),
    ("power-sgd", {"shapes": [[3, 4]]}, EXACT, {}, {"step": 1 / (4 * L)}),
    # error feedback
    ("ef", {}, top(3), {}, {"step": 1 / L}),
    ("ef", {"step": "theory"}, top(3), {}, {"step": 1 / (4 * L_MAX)}),
    ("ef", {"step": "tight"}, top(3), {}, {"step": 2 / (L_MEAN + MU) * (1 - S) / (1 + S)}),
    ("ef21", {"step": "0.5 tight"}, top(9), {}, {"step": 1 / (L_MEAN + MU) / 3}),
    ("ef21-norm", {}, top(3), {}, {"step": 0.1}),
    ("cafe", {}, top(3), {}, {"step": 1 / L}),
    ("sparse-loco", {"local_steps": 5}, top(3), {}, {"step": 1 / (8 * L_MAX * 4)}),
    ("double-squeeze", {}, top(3), {}, {"step": 1 / (4 * L)}),
    ("ef21", {}, top(3), {}, {"step": 1 / (L + L_RMS * S / (1 - S))}),
    ("ef21", {}, top(9), {}, {"step": 1 / (L + L_RMS)}),
    ("ef21", {}, top(3), {"participants": 2}, {"step": 1 / (L + L_RMS * sqrt(7 / 8) / (1 - sqrt(7 / 8)))}),
    ("ef21", {"budget": "cat"}, TOP, {}, {"step": 1 / (L + L_RMS * sqrt(11 / 12) / (1 - sqrt(11 / 12)))}),
    ("ef21-w", {}, top(3), {}, {"step": 1 / (L + L_MEAN * S / (1 - S))}),
    ("ef-bv", {}, top(3), {}, {"step": 1 / (L + L_RMS * S / (1 - S)), "lam": 1.0, "nu": 1.0}),
    # r = (3/4)² + 3/16 and r_av = (3/7)² + (4/7)² 3/4
    ("ef-bv", {}, random(3), {}, {"lam": 1 / 4, "nu": 4 / 7, "step": 1 / (L + L_RMS * sqrt(3 / 7) / (1 - sqrt(3 / 4)))}),
    ("ef21-sgdm", {}, top(3), {}, {"step": 0.25 / (20 * L_RMS), "eta": 0.1}),
    ("ef21-sgdm", {}, top(9), {}, {"step": 0.1 / (7 * L)}),
    ("econtrol", {}, top(3), {}, {"step": 0.25 / (8 * sqrt(6) * L_MAX), "eta": 0.25 / (3 * S * (1 + S))}),
    ("econtrol", {}, top(99), {"d": 100}, {"step": 0.99 / (8 * sqrt(6) * L_MAX), "eta": 1.0}),
    ("kimad", {"deadline": 1.0}, TOP, {"codec": "fixed", "cost": LINK}, {"step": 1 / (L + L_RMS * sqrt(11 / 12) / (1 - sqrt(11 / 12)))}),
    ("kimad", {"deadline": 1.0, "least": 9}, TOP, {"codec": "fixed", "cost": LINK}, {"step": 1 / (L + L_RMS)}),
    # three-point compressors: max{β, ζ} with β = (1 − δ)/θ, θ = 1 − √(1 − δ)
    ("3pc", {}, top(9), {}, {"step": 1 / (L + L_RMS * sqrt(1 / 2 / (1 / 2))), "zeta": 0.0}),
    ("3pc", {"zeta": 2.0}, top(9), {}, {"step": 1 / (L + L_RMS * sqrt(2 / (1 / 2)))}),
    ("clag", {}, top(3), {}, {"step": 1 / (L + L_RMS * S / (1 - S)), "zeta": 0.75 / (1 - S)}),
    ("clag", {}, top(9), {}, {"step": 1 / (L + L_RMS), "zeta": 1 / 2}),
    ("lag", {}, EXACT, {}, {"step": 1 / (L + L_RMS), "zeta": 1.0}),
    ("laq", {}, {"name": "uniform", "levels": 1}, {"d": 5}, {"step": 1 / (L + L_RMS * sqrt(1 / 2) / (1 - sqrt(1 / 2))), "zeta": 0.5 / (1 - sqrt(1 / 2))}),
    ("adacgd", {"levels": [1, 9]}, TOP, {}, {"step": 1 / (L + L_RMS * sqrt(1 / (1 / 2))), "zeta": 1.0}),
    ("adacgd", {"levels": [1, 3]}, TOP, {}, {"step": 1 / (L + L_RMS * S / (1 - S))}),
    # unbiased compressors
    ("diana", {}, random(3), {}, {"step": 1 / (L_MAX * (1 + 6 * W / 4)), "alpha": 1 / 4}),
    ("diana", {}, random(9), {"n": 2}, {"step": 1 / (L_MAX * (1 + 6 * W9 / 2)), "alpha": 3 / 4}),
    ("diana-plus", {}, random(3), {}, {"step": 1 / (L + 6 * W * L_MAX / 4), "alpha": 1 / 4}),
    ("diana-plus", {"matrix": "diagonal", "step": 0.2}, random(9), {}, {"step": 0.2, "alpha": 3 / 4}),
    ("rand-diana", {}, random(3), {}, {"step": 1 / (L_MAX * (1 + 6 * W / 4)), "p": 1 / 4}),
    # with r = 2 of 4 workers: ω + (1 + ω)(n/r − 1) + (n − r)/(r(n − 1)) = 3 + 4 + 1/3
    ("diana", {}, random(3), {"participants": 2}, {"step": 1 / (L_MAX * (1 + 6 * (22 / 3) / 4)), "alpha": 3 / 25}),
    ("marina", {}, random(3), {}, {"p": 1 / 4, "step": 1 / (L + L_RMS * sqrt(3 / 4 * 3 / (1 / 4 * 4)))}),
    ("marina", {}, random(9), {}, {"p": 3 / 4, "step": 1 / (L + L_RMS * sqrt(1 / 4 * W9 / (3 / 4 * 4)))}),
    ("marina-pp", {}, random(3), {"participants": 2}, {"p": 1 / 8, "step": 1 / (L + L_RMS * sqrt(7 / 8 * 4 / (1 / 8 * 2)))}),
    ("marina-pp", {}, random(9), {}, {"p": 3 / 4, "step": 1 / (L + L_RMS * sqrt(1 / 4 * 4 / 3 / (3 / 4 * 4)))}),
    ("marina-p", {}, EXACT, {"down": perm(4)}, {"p": 1 / 4, "step": 1 / (L + L_MAX * sqrt(3 * 3 / 4 / (1 / 4)))}),
    ("marina-p", {}, EXACT, {"down": random(9)}, {"p": 3 / 4, "step": 1 / (L + L_MAX * sqrt(W9 * (1 / 4) / (3 / 4)))}),
    # PAGE: p = 1/(1 + ω) beside large minibatches, and B/(m + B) beside small ones; m = 6 rows a worker
    ("page", {"batch": 6}, random(3), {}, {"p": 1 / 4, "step": 1 / (L + sqrt(3 / 4 * (W * L_RMS**2 + 4 * L_ROW**2 / 6)))}),
    ("page", {}, random(3), {}, {"p": 1 / 7, "step": 1 / (L + sqrt(6 / 4 * (W * L_RMS**2 + 4 * L_ROW**2)))}),
    ("page", {"batch": 2}, EXACT, {}, {"p": 1 / 4, "step": 1 / (L + L_ROW * sqrt(3 / (4 * 2)))}),
    ("page", {"batch": 2}, EXACT, {"N": 22}, {"p": 2 / (5.5 + 2)}),
    ("dasha", {}, random(3), {}, {"a": 1 / 7, "step": 1 / (L + L_RMS * sqrt(16 * 3 * 7 / 4))}),
    ("dasha", {}, random(9), {}, {"a": 3 / 5, "step": 1 / (L + L_RMS * sqrt(16 / 3 * 5 / 3 / 4))}),
    (
        "dasha-page",
        {"batch": 2},
        random(3),
        {},
        {"p": 1 / 4, "a": 1 / 7, "step": 1 / (L + sqrt(48 * 3 * 7 / 4 * (3 / 4 * L_ROW**2 / 2 + L_RMS**2) + 2 * 3 / 4 * L_ROW**2 / (1 / 4 * 4 * 2)))},
    ),
    ("dasha-page", {}, EXACT, {}, {"p": 1 / 7, "a": 1.0, "step": 1 / (L + sqrt(2 * 6 * L_ROW**2 / 4))}),
    (
        "dasha-mvr",
        {"batch": 2},
        random(3),
        {},
        {
            "b": 1 / 16,
            "step": 1 / (L + sqrt(96 * 3 * 7 / 4 * ((15 / 16) ** 2 * L_ROW**2 / 2 + L_RMS**2) + 4 * (15 / 16) ** 2 * L_ROW**2 / (4 / 16 * 2))),
        },
    ),
    ("dasha-mvr", {}, random(1), {}, {"b": 1 / 44, "a": 1 / 23}),
    ("dasha-pp", {}, random(3), {"participants": 2}, {"a": 1 / 7, "b": 1 / 3, "step": 1 / (L + L_RMS * 2 * sqrt(48 * 3 * 7 / 4 + 16 * 2 / (3 * 4)))}),
    ("dasha-pp", {}, random(3), {}, {"b": 1.0, "step": 1 / (L + L_RMS * sqrt(48 * 3 * 7 / 4))}),
    # ADIANA: p is 1 without noise, 1/(2(1 + ω)) with much, and (√(n/32ω) − 1)/(2(1 + ω)) between them
    ("adiana", {}, EXACT, {}, {"p": 1.0, "step": 1 / (2 * L_MAX)}),
    ("adiana", {}, random(3), {}, {"p": 1 / 8, "step": 4 / (64 * 3 * 4 * 3)}),
    ("adiana", {}, random(9), {"n": 100}, {"p": (sqrt(100 * 3 / 32) - 1) * 3 / 8}),
    ("adiana", {}, random(9), {"n": 400}, {"p": 1.0, "step": 1 / (2 * L_MAX)}),
    ("adiana-plus", {}, EXACT, {}, {"p": 1.0, "step": 1 / (2 * L)}),
    ("adiana-plus", {}, random(3), {}, {"p": 1 / 8, "step": 4 / (64 * 3 * 4 * L_MAX)}),
    ("scaffnew", {}, EXACT, {}, {"p": sqrt(MU / L_MAX), "step": 1 / L_MAX}),
    ("compressed-scaffnew", {}, pattern(2), {}, {"p": sqrt(2 * MU / L_MAX), "step": 1 / L_MAX}),
    ("compressed-scaffnew", {}, pattern(4), {}, {"p": sqrt(MU / L_MAX)}),
    ("compressed-scaffnew", {}, pattern(2), {"mu": 0.9 * L_MAX}, {"p": 1.0}),
    ("locodl", {}, random(3), {}, {"p": sqrt((1 + 3 / 4) * 4 * MU / (2 * L_MAX - MU)), "step": 2 / L_MAX}),
    ("locodl", {}, random(1), {"mu": 1.0}, {"p": 1.0}),
    ("ef21-p", {}, EXACT, {"down": top(3)}, {"step": 0.25 / (16 * L)}),
    ("ef21-p", {}, EXACT, {"down": top(9)}, {"step": 0.75 / (16 * L)}),
    # EF21-P + DIANA: each of the four in the minimum
    ("ef21-p-diana", {}, random(3), {"down": top(9), "n": 2}, {"beta": 1 / 4, "step": 2 / (160 * 3 * L_MAX)}),
    ("ef21-p-diana", {}, random(9), {"down": top(3), "n": 500}, {"beta": 3 / 4, "step": 0.25 / (100 * L)}),
    ("ef21-p-diana", {}, random(3), {"down": top(9), "n": 2, "mu": 250.0}, {"step": 1 / (4 * 250)}),
    ("ef21-p-diana", {}, random(3), {"down": top(3), "n": 75, "L": 0.05}, {"step": sqrt(75 / 3 / 4) / (20 * L_MAX)}),
    # increasing accuracy
    ("iade", {}, LATTICE, {"codec": "lattice"}, {"level": G0, "step": 2 / (L_MAX + MU), "rate": 1 - MU / (L_MAX + MU)}),
    ("iade", {"convexity": 1.0}, LATTICE, {"codec": "lattice"}, {"step": 2 / (L_MAX + 1), "rate": 1 - 1 / (L_MAX + 1)}),
    ("dqgd", {}, LATTICE, {"codec": "lattice"}, {"level": G0, "step": 2 / (L_MAX + MU), "rate": 1 - MU / (L_MAX + MU)}),
    ("aiade", {}, LATTICE, {"codec": "lattice"}, {"level": G0, "step": 1 / L_MAX, "convexity": MU}),
    (
        "iade-sgd",
        {},
        LATTICE,
        {"codec": "lattice"},
        {"rho": L_ROW / L_MAX, "step": 1 / L_ROW, "level": (G0 / L_ROW) ** 2, "rate": 1 - MU / (2 * L_ROW)},
    ),
    ("iade-sgd", {"rho": 2.0}, LATTICE, {"codec": "lattice"}, {"step": 1 / (2 * L_MAX), "level": (G0 / (2 * L_MAX)) ** 2, "rate": 1 - MU / (4 * L_MAX)}),
]  # fmt: skip


def name_of(value):
    return value if isinstance(value, str) else " ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else None


@pytest.mark.parametrize(("name", "given", "up", "setting", "wanted"), CASES, ids=name_of)
def test_a_default_is_what_its_theorem_gives(name, given, up, setting, wanted):
    method = settled({"name": name, **given}, up, **setting)
    assert {key: float(getattr(method, key)) for key in wanted} == pytest.approx(wanted, rel=1e-12)


def test_every_method_with_a_default_formula_is_among_the_cases():
    there = {name for name, *_ in CASES}
    formulas = {name for name, kind in algorithms.items() if any(isinstance(getattr(kind, key, None), str) for key in formulas_of(kind))}
    assert formulas - there <= {"async-sgd", "ef-gdstar"}, "their step is 1/L, or that of ef"


@pytest.mark.parametrize("d", [1, 2, 5, 8, 12, 16])
def test_adacgd_takes_its_own_default_levels(d):
    """1, 2, 4, … below d, and d: powers of two as well."""
    levels = {1: [1], 2: [1, 2], 5: [1, 2, 4, 5], 8: [1, 2, 4, 8], 12: [1, 2, 4, 8, 12], 16: [1, 2, 4, 8, 16]}
    method = settled({"name": "adacgd"}, TOP, d=d)
    assert list(method.counts) == levels[d]
    assert method.step == pytest.approx(1 / (L + L_RMS), rel=1e-12)  # δ = 1: max{0, ζ} = 1


@pytest.mark.parametrize(("N", "batch", "steps"), [(24, 2, 3), (21, 5, 2), (24, 5, 2), (20, 5, 1), (24, 100, 1)])
def test_a_pass_of_svrg_and_of_a_warm_up_is_a_worker_s_largest_shard_over_its_minibatch(N, batch, steps):
    """⌈⌈N/n⌉/B⌉ rounds: of 21 rows one of 4 workers has 6."""
    if batch <= N:
        assert settled({"name": "svrg", "batch": batch}, N=N).steps == steps
        rising = {"form": "warm-up", "a": 1.0, "from": 0.5, "over": 4, "falls": [6]}
        γ = settled({"name": "sgd", "batch": batch, "step": rising}, N=N).gamma
        assert [γ(0), γ(2 * steps), γ(4 * steps), γ(6 * steps - 1), γ(6 * steps)] == pytest.approx([0.5, 0.75, 1, 1, 0.1])


@pytest.mark.parametrize(
    ("step", "theorem"),
    [("theory", True), ("1/(4*L_max)", True), ("2 theory", True), ("tight", True), ([[0, "theory"], [5, "0.1/L"]], True), ([[0, 0.1], [5, "theory/2"]], True),
     ("0.1/L", False), (0.1, False), ([[0, 0.1], [5, "0.1/L"]], False)],
)  # fmt: skip
def test_a_step_is_the_theorem_s_where_one_of_its_rounds_has_it_or_a_multiple(step, theorem):
    assert takes_theorem_step(algorithms.build({"name": "ef", "step": step}, "algorithm")) is theorem
