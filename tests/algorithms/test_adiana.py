"""Accelerated methods, ADIANA and ADEF: plain loops, acceleration, and messages of two vectors."""

import numpy as np
import pytest
from helpers import plain_literature as plain
from helpers.plain_ef import shards
from helpers.plays import bound, gradients, optimum, play, problem, start

from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.messages.batch import SILENT, batch_of
from mpi_compress.messages.kinds import Pair

IDENTITY, RANDOM = {"name": "identity"}, {"name": "random-k", "k": 10}


def test_iterates_are_those_of_a_plain_loop():
    p, q, η = problem(), 0.4, 0.3
    done = play(p, {"name": "adiana", "p": q, "step": η}, IDENTITY, 25, seed=2)
    µ, θ = p.mu, min(0.25, np.sqrt(η * p.mu / q))
    γ = η / (2 * (θ + η * µ))
    y = z = w = start(p).copy()
    h, changes = np.zeros((p.count, p.dim)), 0
    for k in range(25):
        x = θ * z + w / 2 + (0.5 - θ) * y
        g = h.mean(axis=0) + (gradients(p, x) - h).mean(axis=0)
        h = h + (gradients(p, w) - h)
        after = x - η * g
        z = (1 - γ * µ) * z + γ * µ * x + γ / η * (after - x)
        heads = plain.stream(2, plain.SHARED, 0, k).random() < q
        w, y, changes = (y if heads else w), after, changes + (heads and k < 24)
    assert np.abs(done.x - y).max() < 1e-10
    assert done.trace["epoch"][-1] == pytest.approx(25 + 1 + changes)  # a gradient at w is computed once


def test_it_is_accelerated():
    p = problem(mu=1e-3)
    _, f_star = optimum(p)
    fast, slow = (play(p, {"name": name}, IDENTITY, 250).trace["loss"][-1] - f_star for name in ("adiana", "gd"))
    assert fast < 0.2 * slow


@pytest.mark.parametrize("up", [IDENTITY, RANDOM], ids=lambda up: up["name"])
def test_it_converges_at_least_as_fast_as_its_theorem_says(up):
    """E‖y_k − x*‖² falls by 1 − min{α/8, p/8, √(ηµp)/4} a round, up to a constant."""
    p = problem(mu=0.1)
    ω, n, L = 0.0 if up is IDENTITY else p.dim / 10 - 1, p.count, p.numbers["L_max"]
    x_star, _ = optimum(p)
    seen = []
    for seed in range(4):
        seen.append([])
        method = play(p, {"name": "adiana"}, up, 150, lambda k, node, workers: seen[-1].append(np.sum((node.y - x_star) ** 2)), seed=seed).method
    q = 1.0 if ω == 0 else min(1, max(1, np.sqrt(n / (32 * ω)) - 1) / (2 * (1 + ω)))
    η = 1 / (2 * L) if ω == 0 else min(1 / (2 * L), n / (64 * ω * (2 * q * (ω + 1) + 1) ** 2 * L))
    assert (method.step, method.p) == pytest.approx((η, q))
    θ = min(0.25, np.sqrt(η * p.mu / q))
    γ = η / (2 * (θ + η * p.mu))
    assert method.constants == pytest.approx((η, θ, γ, 1 - γ * p.mu, 1 / (1 + ω)))
    rate = 1 - min(1 / (8 * (1 + ω)), q / 8, np.sqrt(η * p.mu * q) / 4)
    mean = np.mean(seen, axis=0)
    assert np.all(mean <= 4 * mean[0] * rate ** np.arange(151))
    assert mean[-1] < 0.2 * mean[0]


def test_a_message_holds_two_vectors_and_counts_both():
    p = problem()
    method = bound(p, {"name": "adiana"}, {"name": "random-k", "k": 3})
    node = method.start(start(p))
    link, t = method.uplink(node, 0), Round(0, Streams(0), Role.WORKER, 0)
    message = link.pack_two(np.arange(30.0), -np.ones(30), t)
    seen = link.unpack(batch_of(message.raw))
    assert isinstance(seen, Pair)
    assert (seen.first.elements, seen.second.elements, seen.elements) == (3, 3, 6)
    assert np.array_equal(seen.dense(), seen.first.dense() + seen.second.dense())
    assert set(seen.second.dense().tolist()) == {0.0, -10.0}
    assert link.paper_bits(seen) == 2 * method.up.paper_bits(seen.first)
    assert message.size == sum(method.up.encode(c).size for c in (seen.first, seen.second))
    assert not link.unpack(SILENT).dense().any()
    assert not Pair(seen.first, method.up.compress(np.full(30, np.nan), t)).is_finite()
    assert seen.checked(30).elements == 6
    assert link.at(k=2).pack_two(np.ones(30), np.ones(30), t).size < message.size


TOP, UNSCALED = {"name": "top-k", "k": 4}, {"name": "random-k", "k": 9, "scaled": False}


@pytest.mark.parametrize(("up", "batch"), [(IDENTITY, None), (TOP, None), (TOP, 2)], ids=["identity", "top-k", "top-k, minibatches"])
def test_iterates_of_adef_are_those_of_a_plain_loop(up, batch):
    p, γ, seed = problem(), 0.3, 2
    settings = {"name": "adef", "step": γ, **({"batch": batch} if batch else {})}
    seen = []
    play(p, settings, up, 25, lambda k, node, workers: seen.append(node.x.copy()), seed=seed)
    C = (lambda v, i, k: v) if up is IDENTITY else plain.drawn(up)
    f = shards(p)
    rows = plain.batches(f, batch, seed) if batch else plain.everything
    n, d = p.count, p.dim
    x = start(p).copy()
    v, A, e, h = x.copy(), 0.0, np.zeros((n, d)), np.zeros((n, d))
    for k in range(25):
        assert np.abs(seen[k] - x).max() < 1e-12
        a = γ * (k + 1) / 2
        y = (A * x + a * v) / (A + a)
        sent = np.zeros(d)
        for i in range(n):
            g = f.gradient(i, y, rows(i, k))
            h[i] += C(g - h[i], i, k)
            left = g - h[i] - e[i] / a
            c = C(left, i, k)
            e[i] = a * (c - left)
            sent += c / n
        v = v - a * (h.mean(axis=0) + sent)
        x, A = (A * x + a * v) / (A + a), A + a
    assert np.abs(seen[25] - x).max() < 1e-12


@pytest.mark.parametrize("mu", [0.0, 1e-3])
def test_without_loss_adef_keeps_nesterovs_bound(mu):
    """f(x_k) − f* ≤ ‖x_0 − x*‖²/(2A_k) with A_k = k(k+1)/(4L)."""
    p = problem(mu=mu, samples=200)
    x_star, f_star = optimum(p)
    done = play(p, {"name": "adef"}, IDENTITY, 300)
    k = np.arange(1, 301)
    bounds = np.sum((start(p) - x_star) ** 2) * 2 * p.numbers["L"] / (k * (k + 1))
    assert np.all(done.trace["loss"][1:] - f_star <= bounds)


def test_adef_is_accelerated_although_a_tenth_is_sent():
    p = problem(mu=1e-3)
    _, f_star = optimum(p)
    settings = [({"name": "adef"}, {"name": "top-k", "k": 3}), ({"name": "gd"}, IDENTITY)]
    fast, slow = (play(p, method, up, 300).trace["loss"][-1] - f_star for method, up in settings)
    assert fast < 0.05 * slow


@pytest.mark.parametrize("up", [TOP, UNSCALED], ids=lambda up: up["name"])
def test_what_was_sent_and_what_is_kept_add_up_to_the_gradients(up):
    """v + (1/n) Σ e_i = x_0 − Σ a (1/n) Σ g_i."""
    p = problem()
    f, sums = shards(p), [start(p).copy()]

    def look(k, node, workers):
        kept = np.mean([w.e for w in workers.values()], axis=0)
        assert np.abs(node.v + kept - sums[-1]).max() < 1e-11
        assert np.abs(node.h - np.mean([w.h for w in workers.values()], axis=0)).max() < 1e-12
        g = np.mean([f.gradient(i, node.y) for i in range(p.count)], axis=0)
        sums.append(sums[-1] - 0.05 * (k + 1) / 2 * g)

    play(p, {"name": "adef", "step": 0.05}, up, 40, look)
    assert len(sums) > 40


def test_a_message_of_adef_is_two_messages():
    p = problem()
    method = bound(p, {"name": "adef"}, TOP)
    node = method.start(start(p))
    worker = method.start_worker(node, p.fs[0])
    message = method.worker_sends(node, worker, p.fs[0], Round(0, Streams(0), Role.WORKER, 0))
    seen = method.uplink(node, 0).unpack(message)
    assert (seen.first.elements, seen.second.elements) == (4, 4)
    assert method.uplink(node, 0).paper_bits(seen) == 2 * method.up.paper_bits(seen.first)
    assert np.array_equal(worker.h, seen.first.dense())
