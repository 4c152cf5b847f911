"""What error feedback and its rivals are proved to do, round by round; and the tight factor of EF and EF21: no round exceeds it."""

import numpy as np
import pytest
from helpers.plays import optimum, play, problem

from mpi_compress.algorithms.steps import bind, step_at
from mpi_compress.algorithms.theorem import TIGHT, tight_factor
from mpi_compress.core.expressions import evaluate

UPS = [
    {"name": "top-k", "k": 2},
    {"name": "hard-threshold", "threshold": 0.05},
    {"name": "sq", "k": 3},
    {"name": "qsgd", "levels": 4},
    {"name": "random-k", "k": 3, "scaled": False},
    {"name": "rounding", "step": 0.01},
]
STEPS = {
    "constant": "1/L",
    "stepwise": [[0, "1/L"], [20, "0.5/L"], [40, "0.1/L"]],
    "decreasing": {"form": "1/t", "a": "4/mu", "b": "16 L/mu"},
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("up", UPS, ids=lambda u: u["name"])
def test_what_was_sent_and_what_is_kept_add_up_to_the_gradients(up, step):
    """HT Lemma 11: x_k − mean e_k = x_0 − Σ γ_t mean g_t, at every round, whatever the compressor and the steps."""
    p = problem()
    virtual = []

    def look(k, node, workers):
        if k == 0:
            virtual.append(node.x.dense().copy())
        x_tilde = node.x.dense() - np.mean([w.step * w.e for w in workers.values()], axis=0)
        assert np.allclose(x_tilde, virtual[0], rtol=0, atol=1e-13)
        g = np.mean([f.value_and_gradient(node.x.dense())[1] for f in p.fs], axis=0)
        virtual[0] = virtual[0] - gamma(k) * g

    bound = bind(STEPS[step], p.numbers)

    def gamma(k):
        return step_at(bound, k)

    play(p, {"name": "ef", "step": STEPS[step]}, up, 60, look)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("batch", [None, 1])
def test_a_hard_threshold_keeps_its_error_below_remark_5_at_every_round(step, batch):
    p = problem()
    level = 0.05

    def look(k, node, workers):
        for w in workers.values():
            if k:
                assert np.sum((w.step * w.e) ** 2) <= w.step**2 * p.dim * level**2
                assert w.sizes[0] == pytest.approx(np.sum((w.step * w.e) ** 2), rel=1e-12)

    algorithm = {"name": "ef", "step": STEPS[step], **({"batch": batch} if batch else {})}
    done = play(p, algorithm, {"name": "hard-threshold", "threshold": level}, 100, look)
    assert done.trace["elements_up"][-1] > 0
    assert np.all(np.diff(done.trace["total_error"]) > 0)
    assert np.allclose(np.diff(done.trace["total_error"]), done.trace["error_norm"][1:] ** 2)


@pytest.mark.parametrize("level", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("average", ["geometric", "uniform"])
def test_theorem_4_and_5_bound_the_gap_at_the_mean_iterate_on_a_quadratic(level, average):
    """From eq. 27 without noise: f(x̄_T) − f* ≤ 2R/(γ W) + 6 L γ² v², W the weights' sum over (1 − µγ/2)^-1's last one."""
    p = problem(loss="least-squares", mu=0.05)
    x_star, f_star = optimum(p)
    L, µ = p.numbers["L_max"], p.mu
    γ = 1 / (4 * L)
    x0 = x_star + 1.0
    done = play(
        p, {"name": "ef", "step": "1/(4*L_max)", "average": average}, {"name": "hard-threshold", "threshold": level}, 300, x0=x0
    )
    R, v2, T = np.sum((x0 - x_star) ** 2), p.dim * level**2, np.arange(301)
    start = 2 * R / γ * np.exp(-µ * γ * T / 2) if average == "geometric" else 2 * R / (γ * (T + 1))
    assert np.all(done.trace["loss"] - f_star <= start + 6 * L * γ**2 * v2)


def test_decreasing_steps_with_linear_weights_reach_the_optimum_whatever_the_threshold():
    """HT Theorem 9 iii: the compression's term falls like ln T / T²."""
    p = problem(loss="least-squares", mu=0.5)
    x_star, f_star = optimum(p)
    algorithm = {"name": "ef", "step": STEPS["decreasing"], "average": "linear"}
    gaps = play(p, algorithm, {"name": "hard-threshold", "threshold": 0.5}, 2000, x0=x_star + 1.0).trace["loss"] - f_star
    assert gaps[2000] < 0.3 * gaps[500] < 0.03 * gaps[50]


def test_gdstar_with_a_contraction_reaches_the_optimum_where_plain_error_feedback_stays_off():
    p = problem()
    x_star, f_star = optimum(p)
    shifted = play(p, {"name": "ef-gdstar"}, {"name": "top-k", "k": 4}, 1500, x_star=x_star)
    plain = play(p, {"name": "ef"}, {"name": "top-k", "k": 4}, 1500)
    assert shifted.trace["loss"][-1] - f_star < 1e-14
    assert plain.trace["loss"][-1] - f_star > 1e-9


def test_with_the_identity_both_forms_of_momentum_are_heavy_ball_with_nesterovs_look_ahead():
    p = problem()
    runs = [
        play(p, {"name": "ef", "step": "0.05/L", "momentum": 0.9, "form": form}, {"name": "identity"}, 80)
        for form in ("gradient", "update")
    ]
    x, m, γ = np.full(p.dim, 0.1), np.zeros(p.dim), 0.05 / p.numbers["L"]
    for _ in range(80):
        g = np.mean([f.value_and_gradient(x)[1] for f in p.fs], axis=0)
        m = 0.9 * m + g
        x = x - γ * (g + m)
    for run in runs:
        assert np.allclose(run.x, x, rtol=1e-11)


def test_nesterov_needs_fewer_rounds_than_gradient_descent():
    p = problem(mu=1e-4)
    _, f_star = optimum(p)
    gaps = [play(p, {"name": name}, {"name": "identity"}, 400).trace["loss"] - f_star for name in ("gd", "nesterov")]
    assert gaps[1][-1] < 1e-3 * gaps[0][-1]


@pytest.mark.parametrize(
    ("algorithm", "up", "rounds"),
    [({"name": "diana"}, {"name": "random-k", "k": 6}, 4000), pytest.param({"name": "marina"}, {"name": "random-k", "k": 6}, 4000, marks=pytest.mark.slow)],
    ids=lambda v: v["name"] if isinstance(v, dict) else "",
)  # fmt: skip
def test_rivals_converge_to_the_optimum_with_their_theorems_steps(algorithm, up, rounds):
    p = problem(mu=0.1)
    _, f_star = optimum(p)
    gaps = play(p, algorithm, up, rounds).trace["loss"] - f_star
    assert gaps[-1] < 1e-10
    assert gaps[-1] < 1e-3 * gaps[rounds // 2] or gaps[rounds // 2] < 1e-12


@pytest.mark.parametrize(("name", "share"), [("diana", "alpha"), pytest.param("rand-diana", "p", marks=pytest.mark.slow)])
def test_diana_falls_by_its_theorems_rate_in_the_mean(name, share):
    """Gorbunov, Hanzely, Richtárik (2020): E V_k ≤ max(1 − γµ, 1 − α/2)^k V_0, V = ‖x − x*‖² + (4ω/(nα)) γ² mean‖h_i − ∇f_i(x*)‖².

    Rand-DIANA has p in the place of α.
    """
    p = problem(mu=0.1)
    x_star, _ = optimum(p)
    h_star = [f.value_and_gradient(x_star)[1].copy() for f in p.fs]
    runs = []
    for seed in range(10):
        values = []

        def look(k, node, workers, values=values):
            spread = np.mean([np.sum((w.h - h) ** 2) for w, h in zip(workers.values(), h_star, strict=True)])
            values.append((np.sum((node.x - x_star) ** 2), spread))

        method = play(p, {"name": name}, {"name": "random-k", "k": 6}, 200, look, seed=seed).method
        runs.append(values)
    ω, γ, α = p.dim / 6 - 1, method.step, getattr(method, share)
    V = np.mean([[a + 4 * ω / (p.count * α) * γ**2 * s for a, s in run] for run in runs], axis=0)
    assert np.all(max(1 - γ * p.mu, 1 - α / 2) ** np.arange(201) * V[0] * 1.05 >= V)


CASES = [(1.0, 0.1, 0.25), (3.0, 1.5, 0.25), (1.0, 0.1, 0.7), (1.0, 0.01, 0.1)]


@pytest.mark.parametrize(("L", "mu", "ε"), CASES)
@pytest.mark.parametrize("method", ["ef", "ef21"])
def test_v_falls_by_the_factor_and_not_by_less(L, mu, ε, method):
    rng, η, s, worst = np.random.default_rng(7), evaluate(TIGHT, {"L_mean": L, "mu": mu, "delta": 1 - ε}), np.sqrt(ε), 0.0
    for _ in range(20_000):
        h, x, a, u = rng.choice([L, mu], 2), rng.standard_normal(2), rng.standard_normal(2), rng.standard_normal(2)
        g, a = h * x, a * 10 ** rng.uniform(-1, 1) * np.linalg.norm(h * x if method == "ef21" else x)
        lost = s * u / np.linalg.norm(u)
        if method == "ef":
            p = a + η * g
            e = np.linalg.norm(p) * lost
            before, after = (np.sum((y - r) ** 2) + np.sum(r**2) / s for y, r in ((x, a), (x - p + e, e)))
        else:
            new = h * (x - η * (g + a))
            before, after = (np.sum(r**2) + s * np.sum(v**2) for v, r in ((g, a), (new, np.linalg.norm(new - g - a) * lost)))
        worst = max(worst, after / before)
    assert worst <= tight_factor(L, mu, ε) * (1 + 1e-12)
    assert worst >= 0.99 * tight_factor(L, mu, ε)
