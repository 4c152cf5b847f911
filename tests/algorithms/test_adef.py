"""ADEF against a plain loop, against Nesterov's bound, and what its errors add up to."""

import numpy as np
import pytest
from helpers import plain_literature as plain
from helpers.plain_ef import shards
from helpers.plays import bound, optimum, play, problem, start

from mpi_compress.core.streams import Role, Round, Streams

IDENTITY, TOP, RANDOM = {"name": "identity"}, {"name": "top-k", "k": 4}, {"name": "random-k", "k": 9, "scaled": False}


@pytest.mark.parametrize(("up", "batch"), [(IDENTITY, None), (TOP, None), (TOP, 2)], ids=["identity", "top-k", "top-k, minibatches"])
def test_iterates_are_those_of_a_plain_loop(up, batch):
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
def test_without_loss_it_keeps_nesterovs_bound(mu):
    """f(x_k) − f* ≤ ‖x_0 − x*‖²/(2A_k) with A_k = k(k+1)/(4L)."""
    p = problem(mu=mu, samples=200)
    x_star, f_star = optimum(p)
    done = play(p, {"name": "adef"}, IDENTITY, 300)
    k = np.arange(1, 301)
    bounds = np.sum((start(p) - x_star) ** 2) * 2 * p.numbers["L"] / (k * (k + 1))
    assert np.all(done.trace["loss"][1:] - f_star <= bounds)


def test_it_is_accelerated_although_a_tenth_is_sent():
    p = problem(mu=1e-3)
    _, f_star = optimum(p)
    settings = [({"name": "adef"}, {"name": "top-k", "k": 3}), ({"name": "gd"}, IDENTITY)]
    fast, slow = (play(p, method, up, 300).trace["loss"][-1] - f_star for method, up in settings)
    assert fast < 0.05 * slow


@pytest.mark.parametrize("up", [TOP, RANDOM], ids=lambda up: up["name"])
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


def test_a_message_is_two_messages():
    p = problem()
    method = bound(p, {"name": "adef"}, TOP)
    node = method.start(start(p))
    worker = method.start_worker(node, p.fs[0])
    message = method.worker_sends(node, worker, p.fs[0], Round(0, Streams(0), Role.WORKER, 0))
    seen = method.uplink(node, 0).unpack(message)
    assert (seen.first.elements, seen.second.elements) == (4, 4)
    assert method.uplink(node, 0).paper_bits(seen) == 2 * method.up.paper_bits(seen.first)
    assert np.array_equal(worker.h, seen.first.dense())
