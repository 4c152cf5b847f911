"""Methods on links that change: CAT and error feedback tune for the link of the moment, and Kimad fills a deadline."""

import numpy as np
import pytest
from fixtures.runs import COMPUTING, LINKS
from helpers.plays import bound, optimum, play, problem, start

from mpi_compress.messages.costs import costs

CHANGING = {"name": "trace", **LINKS}
TOP = {"name": "top-k"}


def planned(method, T):
    """The wire bits of a message of T coordinates."""
    return method.up.planned_wire_bits(T)


def best(method, cost, v):
    """argmax α(T)/C(T) of v (d,), by looking at all T."""
    squares = np.sort(v**2)[::-1]
    T = np.arange(1, v.size + 1)
    ratios = np.cumsum(squares) / squares.sum() / cost.cost(np.array([planned(method, int(t)) for t in T], dtype=float))
    return int(np.argmax(ratios >= ratios.max() * (1 - 1e-12))) + 1


def seen(p, algorithm, rounds, **setting):
    """The method, its budgets (rounds, n) and the seconds at which its rounds began, with the nodes before them."""
    nodes, budgets = [], []

    def look(k, node, workers):
        nodes.append(node.x.copy())
        budgets.append([worker.budget for worker in workers.values()])

    done = play(p, algorithm, TOP, rounds, look, codec="fixed", **setting)
    return done, np.array(budgets[1:]), nodes


def test_cat_tunes_for_the_link_of_the_moment():
    p, cost = problem(count=3, samples=41), costs.build(CHANGING, "cost")
    done, budgets, nodes = seen(p, {"name": "cat"}, 30, cost=CHANGING, time=COMPUTING)
    for k, second in enumerate(done.trace["model_seconds"][:-1]):
        for i, f in p.fs.items():
            assert budgets[k, i] == best(done.method, cost.clock.at(second, i), f.value_and_gradient(nodes[k])[1]), (k, i)
    assert len(set(budgets[:, 0].tolist())) > 2


def test_kimad_fills_its_deadline_and_no_more():
    p, cost = problem(count=3, samples=41), costs.build(CHANGING, "cost")
    done, budgets, _ = seen(p, {"name": "kimad", "deadline": "0.1 s", "least": 2}, 40, cost=CHANGING, time=COMPUTING)
    for k, second in enumerate(done.trace["model_seconds"][:-1]):
        for i, f in p.fs.items():
            left, link = 0.1 - 2e-6 * f.rows.nonzeros, cost.clock.at(second, i)
            T = int(budgets[k, i])
            assert T == 2 or link.cost(planned(done.method, T)) <= left
            assert p.dim == T or link.cost(planned(done.method, T + 1)) > left
    assert len(set(budgets[:, 0].tolist())) > 1


def test_on_a_steady_link_kimad_is_ef21():
    p = problem()
    iterates = [[], []]
    for into, algorithm, up in ((0, {"name": "ef21", "step": "0.3/L"}, {"name": "top-k", "k": 6}), (1, {"name": "kimad", "deadline": 1.0, "step": "0.3/L"}, TOP)):
        bits = bound(p, {"name": "ef21"}, {"name": "top-k", "k": 6}, codec="fixed").up.planned_wire_bits(6)
        link = {"name": "trace", "rows": [[0, "5 ms", float(bits) / 0.994]]}  # 6 coordinates take 0.999 s
        play(p, algorithm, up, 30, lambda k, node, workers, into=into: iterates[into].append(node.x.copy()), codec="fixed", cost=link)
    assert np.array_equal(*iterates)


def test_kimad_s_iterates_are_those_of_a_plain_loop():
    p, cost = problem(count=3, samples=41), costs.build(CHANGING, "cost")
    done = play(p, {"name": "kimad", "deadline": "0.1 s", "step": "0.3/L", "first": "gradient"}, TOP, 40, codec="fixed", cost=CHANGING, time=COMPUTING)
    x, g, γ = start(p).copy(), np.zeros((3, p.dim)), 0.3 / p.numbers["L"]
    for k in range(40):
        for i, f in p.fs.items():
            v = f.value_and_gradient(x)[1] - g[i]
            link = cost.clock.at(done.trace["model_seconds"][k], i)
            T = sum(link.cost(planned(done.method, T)) <= 0.1 - 2e-6 * f.rows.nonzeros for T in range(1, p.dim + 1)) if k else p.dim
            kept = np.argsort(-np.abs(v), kind="stable")[: max(T, 1)]
            g[i][kept] += v[kept]
        x = x - γ * g.mean(axis=0)
    assert np.abs(done.x - x).max() < 1e-10


def test_kimad_s_theorem_holds():
    """(1/T) Σ ‖∇f(x_k)‖² ≤ 2(f(x0) − f*)/(γT) with the step of the least budget, where g_i begins at ∇f_i(x0)."""
    p, T = problem(), 200
    done = play(p, {"name": "kimad", "deadline": "0.02 s", "least": 4, "first": "gradient"}, TOP, T, codec="fixed", cost=CHANGING, time=COMPUTING)
    δ = 4 / p.dim
    θ = 1 - np.sqrt(1 - δ)
    γ = 1 / (p.numbers["L"] + p.numbers["L_rms"] * np.sqrt((1 - δ) / θ**2))
    assert done.method.step == pytest.approx(γ, rel=1e-12)
    assert np.mean(done.trace["grad_norm"][:T] ** 2) <= 2 * (done.trace["loss"][0] - optimum(p)[1]) / (γ * T)


def test_error_feedback_tunes_for_the_link_of_the_moment():
    """A slow link and a quick one: on a quick one the latency decides, and more coordinates are sent."""
    p = problem()
    counts = []
    for rate in ("2 kbit/s", "2 Mbit/s"):
        link = {"name": "trace", "rows": [[0, "20 ms", rate]]}
        counts.append(play(p, {"name": "ef21", "budget": "cat", "step": "0.3/L"}, TOP, 10, codec="fixed", cost=link).trace["elements_up"][-1])
    changing = {"name": "trace", "rows": [[0, "20 ms", "2 kbit/s"], [1, "20 ms", "2 Mbit/s"]]}
    trace = play(p, {"name": "ef21", "budget": "cat", "step": "0.3/L"}, TOP, 40, codec="fixed", cost=changing).trace
    sent, begun = np.diff(trace["elements_up"]), trace["model_seconds"][:-1]
    assert 3 * counts[0] < counts[1]
    assert sent[begun < 1].max() < sent[begun >= 1].min()
