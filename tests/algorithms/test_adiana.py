"""ADIANA against a plain loop, its acceleration, and its messages of two vectors."""

import numpy as np
import pytest
from helpers import plain_literature as plain
from helpers.plays import bound, gradients, optimum, play, problem, start

from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.messages.kinds import Pair
from mpi_compress.messages.link import SILENT, Message

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
    seen = link.unpack(Message(message.data))
    assert isinstance(seen, Pair)
    assert (seen.first.elements, seen.second.elements, seen.elements) == (3, 3, 6)
    assert np.array_equal(seen.dense(), seen.first.dense() + seen.second.dense())
    assert set(seen.second.dense().tolist()) == {0.0, -10.0}
    assert link.paper_bits(seen) == 2 * method.up.paper_bits(seen.first)
    assert message.data.size == sum(method.up.write(c).size for c in (seen.first, seen.second))
    assert not link.unpack(SILENT).dense().any()
    assert not Pair(seen.first, method.up.compress(np.full(30, np.nan), t)).is_finite()
    assert seen.checked(30).elements == 6
    assert link.at(k=2).pack_two(np.ones(30), np.ones(30), t).data.size < message.data.size
