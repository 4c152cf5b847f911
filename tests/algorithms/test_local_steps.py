"""Methods with local steps: plain loops, special cases, and the rates of their theorems."""

import numpy as np
import pytest
from helpers import plain_literature as plain
from helpers.plays import bound, gradients, optimum, play, problem, start

from mpi_compress.core.streams import Role, Streams

IDENTITY, RANDOM = {"name": "identity"}, {"name": "random-k", "k": 10}


def tosses(seed, k, p):
    return int(Streams(seed).at(Role.SHARED, 0, k).geometric(p))


def test_each_local_step_has_a_minibatch_of_its_own():
    """In an epoch of minibatches every row is taken once: a round of as many local steps sees the mean gradient of linear f_i."""
    p = problem(samples=60, count=4)
    algorithm = {"name": "local-sgd", "batch": 5, "sampling": "epoch", "local_steps": 3, "step": 1e-9}
    whole = play(p, {"name": "gd", "step": 3e-9}, IDENTITY, 4)
    assert np.abs(play(p, algorithm, IDENTITY, 4).x - whole.x).max() < 1e-14
    assert np.abs(play(p, {**algorithm, "local_steps": 2}, IDENTITY, 4).x - whole.x).max() > 1e-10


@pytest.mark.parametrize(
    "algorithm",
    [{"name": "local-sgd", "local_steps": 1}, {"name": "scaffnew", "p": 1}, {"name": "local-sgd", "local_steps": 1, "server_step": 0.5}],
    ids=str,
)
def test_with_one_local_step_it_is_gradient_descent(algorithm):
    p = problem()
    one = play(p, {**algorithm, "step": "0.5/L"}, IDENTITY, 60)
    other = play(p, {"name": "gd", "step": f"{0.5 * algorithm.get('server_step', 1)}/L"}, IDENTITY, 60)
    assert np.abs(one.x - other.x).max() < 1e-12


def test_the_bias_of_local_sgd_halves_with_its_step_and_its_theorem_holds():
    """Khaled et al. (2020), Theorem 5, without noise: min f(x_k) − f* ≤ 4‖x0−x*‖²/(γT) + 20γσ²/n + 16γ²L(τ−1)²σ², σ² at x*."""
    p, τ = problem(mu=0.5), 5
    x_star, f_star = optimum(p)
    runs = [play(p, {"name": "local-sgd", "step": f"{c}/(32*L_max)", "local_steps": τ}, IDENTITY, 250) for c in (1, 8, 4)]
    assert runs[0].method.step == pytest.approx(bound(p, {"name": "local-sgd", "local_steps": τ}, IDENTITY).step)
    apart = [np.linalg.norm(run.x - x_star) for run in runs[1:]]
    assert 0.4 < apart[1] / apart[0] < 0.6
    γ, σ2 = runs[0].method.step, np.mean(np.sum(gradients(p, x_star) ** 2, axis=1))
    T = τ * np.arange(1, 251)
    bounds = 4 * np.sum((start(p) - x_star) ** 2) / (γ * T) + 20 * γ * σ2 / p.count + 16 * γ**2 * p.numbers["L_max"] * (τ - 1) ** 2 * σ2
    assert np.all(np.minimum.accumulate(runs[0].trace["loss"])[:-1] - f_star <= bounds)


def test_scaffnew_is_its_plain_loop():
    p, γ, q = problem(), 0.3, 0.25
    done = play(p, {"name": "scaffnew", "step": γ, "p": q}, IDENTITY, 12, seed=3)
    x, h, steps = np.tile(start(p), (p.count, 1)), np.zeros((p.count, p.dim)), 0
    for k in range(12):
        for _ in range(tosses(3, k, q)):
            x = x - γ * (gradients(p, x) - h)
            steps += 1
        z = x.mean(axis=0)
        h += q / γ * (z - x)
        x = np.tile(z, (p.count, 1))
    assert np.abs(done.x - x[0]).max() < 1e-10
    assert done.trace["epoch"][-1] == pytest.approx(steps)
    assert 24 < steps < 96
    assert done.trace["elements_up"][-1] == 12 * p.count * p.dim


def test_scaffnew_keeps_its_rate():
    """E Ψ falls by 1 − min{γµ, p²} a local step, so that E Ψ_k/rate^(local steps up to round k) stays below Ψ_0; and x* is reached."""
    p = problem(mu=0.1)
    x_star, _ = optimum(p)
    h_star, ratios, ends = gradients(p, x_star), [], []
    for seed in range(6):
        values = []

        def look(k, node, workers, values=values):
            values.append((np.sum((node.x - x_star) ** 2), [w.h.copy() for w in workers.values()]))

        done = play(p, {"name": "scaffnew"}, IDENTITY, 60, look, seed=seed)
        γ, q = float(done.method.step), float(done.method.p)
        steps = np.cumsum([0, *(tosses(seed, k, q) for k in range(60))])
        Ψ = np.array(
            [p.count * x + (γ / q) ** 2 * sum(np.sum((h - s) ** 2) for h, s in zip(held, h_star, strict=True)) for x, held in values]
        )
        ratios.append(Ψ / Ψ[0] / (1 - min(γ * p.mu, q**2)) ** steps)
        ends.append(Ψ[-1] / Ψ[0])
    assert (γ, q) == pytest.approx((1 / p.numbers["L_max"], np.sqrt(p.mu / p.numbers["L_max"])))
    assert np.all(np.mean(ratios, axis=0) <= 1)
    assert max(ends) < 1e-3


def plain_compressed_scaffnew(p, seed, rounds, γ, q, s):
    """Each coordinate of z is the mean over the s workers that own it; where all of them stand after each round, and the local steps."""
    n, x, h, steps = p.count, np.tile(start(p), (p.count, 1)), np.zeros((p.count, p.dim)), 0
    for k in range(rounds):
        for _ in range(tosses(seed, k, q)):
            x = x - γ * (gradients(p, x) - h)
            steps += 1
        owns = np.array([np.isin(np.arange(p.dim), plain.cyclic(p.dim, i, n, s, k, seed)) for i in range(n)])
        z = np.where(owns, x, 0).sum(axis=0) / s
        h += q * n * (s - 1) / (s * (n - 1)) / γ * np.where(owns, z - x, 0)
        x = np.tile(z, (n, 1))
        yield z, h.copy(), steps


@pytest.mark.parametrize("s", [2, 3])
def test_compressed_scaffnew_is_its_plain_loop(s):
    p, γ, q = problem(), 0.3, 0.25
    done = play(p, {"name": "compressed-scaffnew", "step": γ, "p": q}, {"name": "pattern", "s": s, "n": p.count}, 12, seed=3)
    *_, (z, h, steps) = plain_compressed_scaffnew(p, 3, 12, γ, q, s)
    assert np.abs(done.x - z).max() < 1e-10
    assert np.abs(h.sum(axis=0)).max() < 1e-12
    assert done.trace["epoch"][-1] == pytest.approx(steps)
    assert done.trace["elements_up"][-1] == 12 * s * p.dim


def test_compressed_scaffnew_where_all_have_all_coordinates_is_scaffnew():
    p = problem(mu=0.1)
    one = play(p, {"name": "compressed-scaffnew"}, {"name": "pattern", "s": p.count, "n": p.count}, 20)
    other = play(p, {"name": "scaffnew"}, IDENTITY, 20)
    assert one.x.tobytes() == other.x.tobytes()
    assert one.trace["elements_up"][-1] == other.trace["elements_up"][-1]


def test_compressed_scaffnew_keeps_its_rate():
    """E Ψ falls by 1 − min{γµ, p²(s−1)/(n−1)} a local step: E Ψ_k/rate^(local steps up to round k) stays below Ψ_0; x* is reached."""
    p = problem(mu=0.1)
    n, s = p.count, 2
    x_star, _ = optimum(p)
    h_star, ratios, ends = gradients(p, x_star), [], []
    method = bound(p, {"name": "compressed-scaffnew"}, {"name": "pattern", "n": n})
    γ, q = float(method.step), float(method.p)
    assert (γ, q) == pytest.approx((1 / p.numbers["L_max"], min(1, np.sqrt(n / s * p.mu / p.numbers["L_max"]))))
    for seed in range(8):
        values = [(start(p), np.zeros((n, p.dim)), 0), *plain_compressed_scaffnew(p, seed, 100, γ, q, s)]
        Ψ = np.array([
            n / γ * np.sum((z - x_star) ** 2) + γ / q**2 * (n - 1) / (s - 1) * np.sum((h - h_star) ** 2) for z, h, _ in values
        ])  # fmt: skip
        rate = 1 - min(γ * p.mu, q**2 * (s - 1) / (n - 1))
        ratios.append(Ψ / Ψ[0] / rate ** np.array([steps for *_, steps in values]))
        ends.append(Ψ[-1] / Ψ[0])
    assert np.all(np.mean(ratios, axis=0) <= 1)
    assert max(ends) < 1e-3


def plain_locodl(p, seed, rounds, γ, q, ρ, σ):
    """With the identity as Q."""
    µ, n = p.mu, p.count
    y = start(p).copy()
    x, u, v = np.tile(y, (n, 1)), np.zeros((n, p.dim)), np.zeros(p.dim)
    for k in range(rounds):
        for _ in range(tosses(seed, k, q)):
            x = x - γ * (gradients(p, x) - µ / 2 * x - u)
            y = y - γ * (µ / 2 * y - v)
        d = x - y
        D = d.sum(axis=0) / (2 * n)
        x = (1 - ρ) * x + ρ * (y + D)
        u += σ * (D - d)
        y, v = y + ρ * D, v + σ * D
    return y


def test_locodl_is_its_plain_loop():
    p, γ, q = problem(), 0.3, 0.4
    done = play(p, {"name": "locodl", "step": γ, "p": q}, IDENTITY, 20, seed=2)
    assert np.abs(done.x - plain_locodl(p, 2, 20, γ, q, 1.0, q / γ)).max() < 1e-10


@pytest.mark.parametrize("up", [IDENTITY, RANDOM], ids=lambda up: up["name"])
def test_locodl_keeps_its_rate(up):
    """E Ψ falls by its rate a local step: E Ψ_k/rate^(local steps up to round k) stays below Ψ_0."""
    p = problem(mu=0.1)
    µ, n, ω = p.mu / 2, p.count, 0.0 if up is IDENTITY else p.dim / 10 - 1
    x_star, _ = optimum(p)
    v_star, u_star, ratios, ends = µ * x_star, gradients(p, x_star) - µ * x_star, [], []
    for seed in range(6):
        states = []

        def look(k, node, workers, states=states):
            held = [(w.x.copy(), w.u.copy()) for w in workers.values()]
            states.append((node.y.copy(), node.v.copy(), held))

        method = play(p, {"name": "locodl"}, up, 80, look, seed=seed).method
        γ, q, ρ = float(method.step), float(method.p), 1 / (1 + ω / n)
        Ψ = []
        for y, v, held in states:
            near = sum(np.sum((x - x_star) ** 2) for x, _ in held) + n * np.sum((y - x_star) ** 2)
            dual = sum(np.sum((u - s) ** 2) for (_, u), s in zip(held, u_star, strict=True)) + n * np.sum((v - v_star) ** 2)
            Ψ.append(near / γ + γ * (1 + 2 * ω) / (q**2 * ρ) * dual)
        L = p.numbers["L_max"] - µ
        rate = max((1 - γ * µ) ** 2, (1 - γ * L) ** 2, 1 - q**2 * ρ / (1 + 2 * ω))
        steps = np.cumsum([0, *(tosses(seed, k, q) for k in range(80))])
        ratios.append(np.array(Ψ) / Ψ[0] / rate**steps)
        ends.append(Ψ[-1] / Ψ[0])
    assert γ == pytest.approx(2 / (L + µ))
    assert q == pytest.approx(min(1, np.sqrt((1 + ω / n) * (1 + ω) * µ / L)))
    assert np.all(np.mean(ratios, axis=0) <= 1)
    assert max(ends) < 1e-2


@pytest.mark.parametrize(
    ("algorithm", "up"),
    [
        ({"name": "local-sgd", "local_steps": 4}, IDENTITY),
        ({"name": "scaffnew"}, IDENTITY),
        ({"name": "locodl"}, RANDOM),
        ({"name": "adiana"}, RANDOM),
        ({"name": "clag", "zeta": 9.0}, {"name": "top-k", "k": 3}),
        ({"name": "adacgd"}, {"name": "top-k"}),
    ],
)
def test_a_multiple_of_the_theorem_s_step_has_a_name(algorithm, up):
    p = problem()
    own, named = (bound(p, {**algorithm, **step}, up).step for step in ({}, {"step": "4 theory"}))
    assert named == pytest.approx(4 * own, rel=1e-15)
