"""3PC, its members and AdaCGD: special cases, plain loops, and their theorem."""

import numpy as np
import pytest
from helpers.plain_ef import top
from helpers.plain_literature import uniform
from helpers.plays import bound, gradients, optimum, play, problem, start

TOP, IDENTITY = {"name": "top-k", "k": 4}, {"name": "identity"}


def plain(p, γ, ζ, rounds, maps):
    """x after all rounds, and who was silent; `maps` go from coarse to fine, and the last one is taken whatever it loses."""
    x, silent = start(p).copy(), []
    g = y = gradients(p, x)
    x = x - γ * g.mean(axis=0)
    for _ in range(1, rounds):
        now, after = gradients(p, x), g.copy()
        for i in range(p.count):
            D, tolerance = now[i] - g[i], ζ * np.sum((now[i] - y[i]) ** 2)
            silent.append(np.sum(D**2) <= tolerance)
            if not silent[-1]:
                after[i] += next((c for c in (m(D) for m in maps) if np.sum((D - c) ** 2) <= tolerance), maps[-1](D))
        g, y = after, now
        x = x - γ * g.mean(axis=0)
    return x, np.array(silent)


CASES = {
    "3pc": ({"name": "3pc"}, TOP, 0.0, [top(4)]),
    "clag": ({"name": "clag", "zeta": 4.0}, TOP, 4.0, [top(4)]),
    "lag": ({"name": "lag", "zeta": 2.0}, IDENTITY, 2.0, [lambda v: v]),
    "laq": ({"name": "laq", "zeta": 4.0}, {"name": "uniform", "levels": 7}, 4.0, [uniform(7)]),
    "adacgd": ({"name": "adacgd", "zeta": 0.7}, {"name": "top-k"}, 0.7, [top(k) for k in (1, 2, 4, 8, 16, 30)]),
    "adacgd, levels": ({"name": "adacgd", "zeta": 0.7, "levels": [2, "50%"]}, {"name": "top-k"}, 0.7, [top(k) for k in (2, 15)]),
    "adacgd, coarse": ({"name": "adacgd", "zeta": 0.05, "levels": [1, 3]}, {"name": "top-k"}, 0.05, [top(k) for k in (1, 3)]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_iterates_are_those_of_a_plain_loop(case):
    algorithm, up, ζ, maps = CASES[case]
    p = problem()
    done = play(p, {**algorithm, "step": "0.3/L"}, up, 40)
    x, silent = plain(p, 0.3 / p.numbers["L"], ζ, 40, maps)
    assert np.abs(done.x - x).max() < 1e-10
    assert silent.any() == (case in ("clag", "lag", "laq"))
    assert not silent.all()
    lengths = np.diff(done.trace["elements_up"])[1:]
    assert len(set(lengths.tolist())) > 1 or case in ("3pc", "adacgd, coarse")


def test_the_trigger_of_0_is_ef21_from_the_gradients_at_the_start():
    p = problem()
    cases = (({"name": "ef21", "first": "gradient"}, TOP), ({"name": "3pc"}, TOP), ({"name": "adacgd", "zeta": 0, "levels": [4]}, {"name": "top-k"}))
    ends = [play(p, algorithm, up, 30) for algorithm, up in cases]
    assert np.array_equal(ends[1].x, ends[2].x)
    assert np.abs(ends[0].x - ends[1].x).max() < 1e-12
    assert [end.method.step for end in ends] == pytest.approx([ends[0].method.step] * 3, rel=1e-12)


@pytest.mark.parametrize("case", ["3pc", "clag", "lag", "adacgd", "clag, ζ of its own"])
def test_the_theorem_holds(case):
    """(1/T) Σ ‖∇f(x_k)‖² ≤ 2(f(x0) − f*)/(γT), since g_i begins at ∇f_i(x0)."""
    p, T = problem(), 300
    name, zeta = case.partition(",")[0], {"zeta": 30.0} if "own" in case else {}
    done = play(p, {"name": name, **zeta}, {"lag": IDENTITY, "adacgd": {"name": "top-k"}}.get(name, TOP), T)
    γ = done.method.step
    δ = {"lag": 1.0, "adacgd": 1.0}.get(name, 4 / p.dim)
    s = np.sqrt(1 - δ)
    ζ = {"3pc": 0.0, "clag": s**2 / (1 - s), "lag": 1.0, "adacgd": 1.0}[name] if not zeta else 30.0
    assert γ == pytest.approx(1 / (p.numbers["L"] + p.numbers["L_rms"] * np.sqrt(max(s**2 / (1 - s), ζ) / (1 - s))), rel=1e-9)
    mean = np.mean(done.trace["grad_norm"][:T] ** 2)
    bounded = 2 * (done.trace["loss"][0] - optimum(p)[1]) / (γ * T)
    assert 0.1 * bounded < mean <= bounded
    assert done.trace["elements_up"][1] == p.count * p.dim  # the whole start is counted


@pytest.mark.parametrize("float_", [64, 32, "bf16"])
def test_who_sent_the_whole_gradient_is_silent_in_the_next_round_where_the_trigger_is_1(float_):
    """Then g_i = y_i, so that the trigger compares equal numbers, whatever the floats of the message."""
    p, held = problem(), []
    codec = {"name": "dense", "float": float_}
    play(p, {"name": "lag", "step": "0.3/L"}, IDENTITY, 60, lambda k, node, workers: held.append([w.g.copy() for w in workers.values()]), codec=codec)
    sent = np.any(np.diff(held, axis=0) != 0, axis=2)  # (rounds, workers)
    assert sent[0].all()
    assert not (sent[:-1] & sent[1:]).any()
    assert 0.2 < sent.mean() <= 0.5
    if float_ == 64:
        assert np.array_equal(sent[1:], lazily(p, 0.3 / p.numbers["L"], 60))


def lazily(p, γ, rounds):
    """Who sends with LAG and ζ = 1 from round 1 on: a plain loop in which a worker that has sent knows that g_i = y_i."""
    x, sent = start(p).copy(), []
    g = y = gradients(p, x)
    just_sent = np.ones(p.count, dtype=bool)
    for _ in range(1, rounds):
        x = x - γ * g.mean(axis=0)
        now = gradients(p, x)
        quiet = just_sent | (np.sum((now - g) ** 2, axis=1) <= np.sum((now - y) ** 2, axis=1))
        g, y, just_sent = np.where(quiet[:, None], g, now), now, ~quiet
        sent.append(~quiet)
    return np.array(sent)


def test_the_lazier_the_fewer_messages_and_silence_is_4_bytes():
    p = problem()
    counts = [play(p, {"name": "clag", "zeta": ζ, "step": "0.05/L"}, TOP, 60).trace for ζ in (0, 16, 256)]
    sent = [trace["elements_up"][-1] for trace in counts]
    assert sent[0] > 1.2 * sent[1] > 1.4 * sent[2]
    silent = play(p, {"name": "clag", "zeta": 1e12}, TOP, 10).trace
    assert np.diff(silent["wire_bits_up"])[2:].tolist() == [32 * p.count] * 8


def test_who_has_nothing_to_add_is_silent():
    """Where x stays where it is, D = 0 = ζ‖∇f_i − y_i‖² from round 1 on."""
    p = problem(count=1)
    done = play(p, {"name": "lag", "zeta": 0, "step": 1e-300}, IDENTITY, 4)
    assert np.diff(done.trace["wire_bits_up"])[1:].tolist() == [32] * 3


def test_3pc_takes_a_compressor_without_a_theorem_where_the_step_is_given():
    assert bound(problem(), {"name": "3pc", "step": 0.1}, {"name": "sq", "k": 3}).step == 0.1
