"""Rounds in which r of n workers take part: theorems, plain loops, and what sleeping workers cost."""

import itertools

import numpy as np
import pytest
from helpers import plain_ef, plain_products
from helpers.plays import bound, gradients, optimum, play, problem, start
from helpers.refusals import naming
from helpers.running import run_of

from mpi_compress.algorithms import algorithms
from mpi_compress.algorithms.hosted import HostedWorkers
from mpi_compress.algorithms.sampling import participants, sampled_delta, sampled_omega
from mpi_compress.core.errors import UserError
from mpi_compress.core.streams import Streams
from mpi_compress.job.tables import WorkersTable

TOP, RANDOM = {"name": "top-k", "k": 6}, {"name": "random-k", "k": 6}
top = plain_ef.top(6)
SOME = [name for name in algorithms if algorithms[name].partial_mean]
NEVER_ALL = [name for name in SOME if name not in ("dasha-pp", "marina-pp", "fednl-pp")]  # these have rounds of all workers


@pytest.mark.parametrize(("n", "r"), [(10, 1), (10, 3), (10, 9), (400, 5)])
def test_every_worker_is_drawn_as_often_as_others_and_none_twice(n, r):
    streams, counts = Streams(1), np.zeros(n)
    rounds = 4000 if n == 10 else 400
    for k in range(rounds):
        drawn = participants(streams, n, r, k)
        assert len(drawn) == r
        counts[list(drawn)] += 1
    assert participants(Streams(1), n, r, 7) == participants(streams, n, r, 7)
    deviations = (counts - rounds * r / n) / np.sqrt(rounds * r / n * (1 - r / n))
    assert np.abs(deviations).max() < 4.5


def test_what_a_draw_makes_of_a_compressor():
    """The exact second moments of the means of r drawn vectors, over all draws, beside the stated constants."""
    rng, n = np.random.default_rng(0), 5
    for r in range(1, n + 1):
        v = rng.standard_normal((n, 3)) + (1 if r % 2 else 0)
        means = [np.mean(v[list(s)], axis=0) for s in itertools.combinations(range(n), r)]
        variance = np.mean([np.sum((m - v.mean(axis=0)) ** 2) for m in means])
        assert variance <= sampled_omega(0.0, n, r) / n * np.mean(np.sum(v**2, axis=1)) + 1e-15
    centred = v - v.mean(axis=0)
    means = [np.mean(centred[list(s)], axis=0) for s in itertools.combinations(range(n), 2)]
    assert np.mean(np.sum(np.square(means), axis=1)) == pytest.approx(
        sampled_omega(0.0, n, 2) / n * np.mean(np.sum(centred**2, axis=1))
    )
    assert [sampled_omega(12.3, n, n), sampled_delta(0.7, n, n)] == [12.3, 0.7]


def plain_feedback(p, γ, seen, rounds, r):
    x, e = start(p).copy(), np.zeros((p.count, p.dim))
    for k in range(rounds):
        g, total = gradients(p, x), 0.0
        for i in sorted(seen(k)):
            e[i] += γ * g[i]
            sent = γ * top(e[i] / γ)
            e[i] -= sent
            total = total + sent
        x = x - total / r
    return x


def plain_product(direction, weight=lambda n, r: 1):
    """Who sleeps sends zero."""

    def loop(p, γ, seen, rounds, r):
        f = plain_ef.shards(p)
        direct = direction(f, lambda v, i, k: (i in seen(k)) * weight(f.n, r) * top(v))
        return plain_products.by_mean(f, start(p), direct, plain_products.step(γ), rounds)[-1]

    return loop


PLAIN = [("ef", plain_feedback), ("ef21", plain_product(plain_products.ef21)), ("gd", plain_product(plain_products.gd, lambda n, r: n / r))]


@pytest.mark.parametrize(("name", "plain"), PLAIN)
def test_rounds_of_some_workers_are_those_of_a_plain_loop(name, plain):
    p, r = problem(count=5), 2
    done = play(p, {"name": name, "step": "0.3/L"}, TOP, 40, participants=r, seed=4)
    x = plain(p, 0.3 / p.numbers["L"], lambda k: participants(Streams(4), 5, r, k), 40, r)
    assert np.abs(done.x - x).max() < 1e-10
    assert np.abs(done.x - play(p, {"name": name, "step": "0.3/L"}, TOP, 40).x).max() > 1e-3


def test_diana_of_some_workers_is_a_plain_loop():
    p, r, n, γ, α = problem(count=5), 2, 5, 0.2, 0.3
    done = play(p, {"name": "diana", "step": γ, "alpha": α}, {"name": "identity"}, 30, participants=r, seed=4)
    x, h = start(p).copy(), np.zeros((n, p.dim))
    for k in range(30):
        drawn = sorted(participants(Streams(4), n, r, k))
        m = (gradients(p, x) - h)[drawn]
        x = x - γ * (h.mean(axis=0) + m.mean(axis=0))
        h[drawn] += α * n / r * m
    assert np.abs(done.x - x).max() < 1e-10


def test_gradients_of_some_workers_reach_the_noise_of_their_draw():
    """Gower et al. (2019), Theorem 3.1: E‖x_k − x*‖² ≤ (1 − γµ)^k ‖x0 − x*‖² + 2γσ²/µ."""
    p, r, n, µ = problem(count=6, mu=0.1), 2, 6, 0.1
    x_star, _ = optimum(p)
    step = "1/(2*(n*(r - 1)*L + (n - r)*L_max)/(r*(n - 1)))"
    distances = []

    def look(k, node, workers):
        distances[-1].append(np.sum((node.x - x_star) ** 2))

    for seed in range(8):
        distances.append([])
        γ = play(p, {"name": "gd", "step": step}, {"name": "identity"}, 100, look, participants=r, seed=seed).method.step
    mean, k = np.mean(distances, axis=0), np.arange(101)
    noise = (n - r) / (r * (n - 1)) * np.mean(np.sum(gradients(p, x_star) ** 2, axis=1))
    assert np.all(mean <= (1 - γ * µ) ** k * mean[0] + 2 * γ * noise / µ)
    assert 0.05 * 2 * γ * noise / µ < mean[-50:].mean()


@pytest.mark.parametrize("r", [1, 3])
def test_ef21_of_some_workers_keeps_its_theorem(r):
    """(1/T) Σ E‖∇f(x_k)‖² ≤ 2(f(x0) − f*)/(γT) + E G_0/(θT), with the δr/n of the draw and G_0 the mean of ‖∇f_i(x0)‖²."""
    p = problem(count=5)
    T, (_, f_star) = 200, optimum(p)
    runs = [play(p, {"name": "ef21"}, TOP, T, participants=r, seed=seed) for seed in range(3)]
    γ, δ = runs[0].method.step, TOP["k"] / p.dim * r / 5
    s = np.sqrt(1 - δ)
    assert γ == pytest.approx(1 / (p.numbers["L"] + p.numbers["L_rms"] * s / (1 - s)), rel=1e-12)
    G0 = np.mean(np.sum(gradients(p, start(p)) ** 2, axis=1))
    means = np.mean([np.mean(run.trace["grad_norm"][:T] ** 2) for run in runs])
    bounded = 2 * (runs[0].trace["loss"][0] - f_star) / (γ * T) + G0 / ((1 - s) * T)
    assert 0.02 * bounded < means <= bounded


@pytest.mark.parametrize("up", [{"name": "identity"}, RANDOM], ids=lambda up: up["name"])
def test_diana_of_some_workers_keeps_its_rate(up):
    """E V_k falls by max(1 − γµ, 1 − α/2), V = ‖x − x*‖² + Mγ²(1/n)Σ‖h_i − ∇f_i(x*)‖², M = 4ω/(nα): without noise at x*."""
    p, r, n = problem(count=5, mu=0.1), 2, 5
    x_star, _ = optimum(p)
    h_star, values = gradients(p, x_star), []

    def look(k, node, workers):
        apart = np.mean([np.sum((w.h - h) ** 2) for w, h in zip(workers.values(), h_star, strict=True)])
        values[-1].append((np.sum((node.x - x_star) ** 2), apart))

    for seed in range(6):
        values.append([])
        method = play(p, {"name": "diana"}, up, 150, look, participants=r, seed=seed).method
    ω = sampled_omega(0.0 if up["name"] == "identity" else p.dim / 6 - 1, n, r)
    γ, α = float(method.step), method.alpha
    assert (γ, α) == pytest.approx((1 / (p.numbers["L_max"] * (1 + 6 * ω / n)), 1 / (1 + ω)))
    V = np.mean(values, axis=0) @ [1.0, 4 * ω / (n * α) * γ**2]
    rate = max(1 - γ * p.mu, 1 - α / 2)
    assert np.all(V / V[0] <= rate ** np.arange(151))


@pytest.mark.parametrize("name", NEVER_ALL)
def test_those_who_sleep_send_nothing_and_do_not_compute(name, tmp_path):
    up = RANDOM if name in ("diana", "dasha-pp", "marina-pp") else TOP
    run = run_of(tmp_path, {"name": name, "step": "0.1/L"}, up, count=10, rounds=8, workers={"count": 10, "participate": 0.3})
    silent = np.diff(run.workers["wire_bits_up"], axis=0) == 32
    assert silent.sum(axis=1).tolist() == [7] * 8
    assert [np.flatnonzero(~row).tolist() for row in silent] == [sorted(participants(Streams(0), 10, 3, k)) for k in range(8)]
    passes = 10 if name in ("local-sgd", "sparse-loco") else 1  # its local steps
    assert np.allclose(np.diff(run.trace["epoch"]), 0.3 * passes)  # shards of equal length
    assert np.all(np.diff(run.workers["paper_bits_up"], axis=0)[silent] == 0)


@pytest.mark.parametrize("name", SOME)
def test_with_all_workers_drawn_nothing_changes(name, tmp_path):
    up = RANDOM if name in ("diana", "dasha-pp", "marina-pp") else TOP
    all_of_them, named = (
        run_of(tmp_path, {"name": name}, up, rounds=6, workers={"count": 5, **more}) for more in ({}, {"participate": 1.0})
    )
    assert all_of_them.x.tobytes() == named.x.tobytes()
    assert all(np.array_equal(all_of_them.trace[c], named.trace[c], equal_nan=True) for c in named.trace)


@pytest.mark.parametrize("name", ["ef", "ef-gdstar", "cat", "nesterov", "svrg", "iade", "async-sgd"])
def test_a_method_that_needs_all_workers_says_so_in_one_line(name, tmp_path):
    algorithm, up = {"name": name, **({"momentum": 0.5} if name == "ef" else {})}, TOP if name.startswith("ef") else None
    text = f"workers.participate = 2: {name}, as it is set here, needs all workers in every round; some of them are enough for dasha-pp, diana, ef,"
    with pytest.raises(UserError, match=naming(text)):
        run_of(tmp_path, algorithm, up, rounds=1, workers={"count": 5, "participate": 2})
    with pytest.raises(UserError, match=r'; partial_mean = "over participants" or "over all" says so of one of your own$'):
        run_of(tmp_path, algorithm, up, rounds=1, workers={"count": 5, "participate": 2})


@pytest.mark.parametrize(("given", "r"), [(0.1, 1), (0.3, 3), (4, 4), (1, 1), (0.001, 1), (1.0, None), (10, None), (None, None)])
def test_a_share_or_a_count(given, r):
    assert WorkersTable(10, participate=given).participants == r


@pytest.mark.parametrize("given", [0, 11, -0.5, 1.5, 0.0, float("nan")])
def test_a_share_or_a_count_out_of_range_is_refused(given):
    with pytest.raises(ValueError, match=r"participate = .* should be from 1 to the 10 workers, or a share such as 0\.1"):
        WorkersTable(10, participate=given)


def test_a_round_that_needs_all_workers_has_them():
    p = problem(count=6)

    class Often(algorithms["gd"]):
        name = "often"

        def needs_all(self, node, k):
            return k % 2 == 0

    method = bound(p, Often(), TOP, participants=2)
    node = method.start(start(p))
    workers = HostedWorkers(method, p.fs, method.start_workers(node, p.fs), Streams(3), [None] * p.count)
    silent = [np.sum(workers.messages(node, k).lengths == 0) for k in range(4)]
    assert silent == [0, 4, 0, 4]
