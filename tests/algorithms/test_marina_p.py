"""MARINA-P: messages of each worker's own, its special cases, a plain loop, and its theorem."""

import numpy as np
import pytest
from helpers.plays import optimum, play, problem

IDENTITY, PERM = {"name": "identity"}, {"name": "perm-k", "n": 4}


def marina_p(p, rounds, down=PERM, look=lambda k, node, workers: None, **more):
    return play(p, {"name": "marina-p", **more}, IDENTITY, rounds, look, down=down)


def test_without_compression_and_with_full_rounds_alone_it_is_gradient_descent():
    p, iterates = problem(), {}
    for name, algorithm, down in (
        ("gd", {"name": "gd"}, IDENTITY),
        ("identity", {"name": "marina-p"}, IDENTITY),
        ("p = 1", {"name": "marina-p", "p": 1}, PERM),
    ):
        seen = iterates.setdefault(name, [])
        play(p, {**algorithm, "step": "1/L"}, IDENTITY, 30, lambda k, node, workers, seen=seen: seen.append(node.x.copy()), down=down)
    for name in ("identity", "p = 1"):
        assert np.abs(np.array(iterates["gd"]) - iterates[name]).max() < 1e-12


def test_the_mean_of_what_workers_hold_moves_as_the_iterate():
    p = problem()

    def look(k, node, workers):
        assert np.abs(np.mean([w.x for w in workers.values()], axis=0) - node.x).max() < 1e-12

    marina_p(p, 30, look=look)


@pytest.mark.parametrize("down", [PERM, {"name": "random-k", "k": 6}])
def test_the_theorem_holds(down):
    """(1/T) Σ E‖∇f(x_k)‖² ≤ 2(f(x0) − f(x_T))/(γT), in the mean over seeds."""
    p, T = problem(), 120
    f_star = optimum(p)[1]
    runs = [play(p, {"name": "marina-p"}, IDENTITY, T, down=down, seed=seed) for seed in range(3)]
    γ, ω = runs[0].method.step, runs[0].method.down.compressor.omega(p.dim)
    assert γ == pytest.approx(1 / (p.numbers["L"] + p.numbers["L_max"] * ω), rel=1e-12)  # (1 − p)/p = ω
    mean = np.mean([r.trace["grad_norm"][:T] ** 2 for r in runs])
    bounded = 2 * (runs[0].trace["loss"][0] - f_star) / (γ * T)
    assert 0.05 * bounded < mean <= bounded


def test_bits_down_are_counted_by_worker():
    """The first round is full; then d = 30 in four blocks: of 7 or 8 coordinates, after the seed and the worker's number."""
    trace = play(problem(), {"name": "marina-p", "p": 1e-9}, IDENTITY, 2, down=PERM).trace
    assert np.diff(trace["wire_bits_down"]).tolist() == [4 * (32 + 30 * 64), 4 * (32 + 32 + 8) + 30 * 64]
    assert np.diff(trace["wire_bits_up"]).tolist() == [4 * (32 + 30 * 64)] * 2
