"""PowerSGD: gradient descent at full rank, its own paper's lines as a plain loop, what error feedback keeps, and its two messages a step."""

import numpy as np
import pytest
from helpers import plain_literature as plain
from helpers.plain_ef import shards
from helpers.plays import bound, play, problem, start
from helpers.running import run_of

from mpi_compress.core.streams import Role, Streams

IDENTITY = {"name": "identity"}
SHAPES = [[3, 5], [5], [2, 1, 5]]  # d = 30: a matrix, a vector, and a matrix (2, 5) of three axes


def power_sgd(**more):
    return {"name": "power-sgd", "shapes": SHAPES, "step": "0.3/L", **more}


def steps_of(p, algorithm, steps, **setting):
    """The points of a run after each step, as rows: two rounds each, or one for a method without factors."""
    points, each = [], 2 if algorithm["name"] == "power-sgd" else 1
    play(p, algorithm, IDENTITY, each * steps, lambda k, node, workers: points.append(np.array(getattr(node.x, "v", node.x))), **setting)
    assert np.array_equal(points[each - 1], points[0]) or each == 1  # after P alone nothing moves
    return np.array(points[::each])


@pytest.mark.parametrize("warm", [True, False], ids=["warm start", "Q drawn anew"])
@pytest.mark.parametrize("λ", [0.0, 0.9])
def test_with_the_rank_of_its_matrices_it_is_gradient_descent_with_momentum(λ, warm):
    p = problem()
    found = steps_of(p, power_sgd(rank=3, momentum=λ, warm_start=warm), 30)
    exact = steps_of(p, {"name": "ef", "momentum": λ, "step": "0.3/L"}, 30)
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-12)


def orthogonalised(P):
    """The paper's: Gram and Schmidt, column by column."""
    P = P.copy()
    for i in range(P.shape[1]):
        P[:, i] /= np.linalg.norm(P[:, i])
        P[:, i + 1 :] -= np.outer(P[:, i], P[:, i] @ P[:, i + 1 :])
    return P


def plain_power_sgd(f, x, γ, steps, rank, λ, rows, seed):
    """The paper's Algorithms 1 and 2 on the blocks of SHAPES; Q is drawn for both matrices at once."""
    cuts, shapes = ((0, 15), (20, 30)), ((3, 5), (2, 5))
    draw = Streams(seed).at(Role.SHARED, 0, 0).standard_normal(10 * rank)
    Q = [draw[: 5 * rank].reshape(5, rank), draw[5 * rank :].reshape(5, rank)]
    e, m, xs = np.zeros((f.n, x.size)), np.zeros(x.size), [x]
    for k in range(steps):
        Δ = e + [f.gradient(i, x, rows(i, k)) for i in range(f.n)]
        e, mean = np.zeros_like(Δ), Δ.mean(axis=0)  # a vector is sent whole
        for j, ((a, b), shape) in enumerate(zip(cuts, shapes, strict=True)):
            M = Δ[:, a:b].reshape(f.n, *shape)
            P = orthogonalised(np.mean(M @ Q[j], axis=0))
            own = M.transpose(0, 2, 1) @ P
            Q[j] = own.mean(axis=0)
            e[:, a:b] = (M - P @ own.transpose(0, 2, 1)).reshape(f.n, -1)
            mean[a:b] = (P @ Q[j].T).ravel()
        m = λ * m + mean
        x = x - γ(k) * (mean + m if λ else mean)
        xs.append(x)
    return np.array(xs)


FALLING = {"form": "1/t", "a": 1.0, "b": 5.0}  # 1/(5 + k) in the k-th step, which is two rounds


@pytest.mark.parametrize(("rank", "λ", "step", "γ"), [(1, 0.0, 0.2, lambda k: 0.2), (2, 0.9, 0.2, lambda k: 0.2), (2, 0.0, FALLING, lambda k: 1 / (5 + k))])
def test_iterates_are_those_of_a_plain_loop(rank, λ, step, γ):
    p = problem()
    f = shards(p)
    found = steps_of(p, power_sgd(rank=rank, momentum=λ, step=step, batch=3), 25, seed=4)
    expected = plain_power_sgd(f, start(p), γ, 25, rank, λ, plain.batches(f, 3, seed=4), seed=4)
    assert np.abs(found - expected).max() < 1e-10


@pytest.mark.parametrize(
    ("C", "codec"),
    [(IDENTITY, "dense"), ({"name": "qsgd", "levels": 7, "norm": "max"}, "entropy"), ({"name": "natural", "fraction": 1}, "entropy")],
    ids=lambda part: part["name"] if isinstance(part, dict) else part,
)
def test_what_is_not_sent_is_kept_and_the_rest_arrives(C, codec):
    """x − γ (1/W) Σ e_w = x_0 − γ Σ_t (1/W) Σ g_w after every step, also where floats of 32 bits or quantised factors go up."""
    p, errors, points = problem(), [], []
    f = shards(p)

    def look(k, node, workers):
        if k % 2 == 0:
            points.append(node.x.copy())
            errors.append(np.mean([w.e for w in workers.values()], axis=0))

    γ = play(p, power_sgd(rank=1), C, 60, look, codec={"name": codec, "float": 32}).method.step
    gradients = [np.mean([f.gradient(i, x) for i in range(f.n)], axis=0) for x in points[:-1]]
    sums = points[0] - γ * np.cumsum([np.zeros(p.dim), *gradients], axis=0)
    np.testing.assert_allclose(points - γ * np.array(errors), sums, rtol=0, atol=1e-12)
    assert np.linalg.norm(errors[-1]) > 1e-3 * np.linalg.norm(gradients[0])
    if C is IDENTITY:
        assert np.abs(np.array(errors)[:, 15:20]).max() < 1e-6  # of a vector only rounding is kept


def test_a_step_is_two_messages_of_one_factor_each():
    p = problem()
    trace = play(p, power_sgd(rank=2), IDENTITY, 4, codec={"name": "dense", "float": 32}).trace
    of_P, of_Q = 2 * (3 + 2) + 5, 2 * (5 + 5)
    sent = np.diff(trace["elements_up"]) / p.count
    assert sent.tolist() == [of_P, of_Q, of_P, of_Q]
    assert np.diff(trace["wire_bits_up"]).tolist() == [p.count * 32 * (1 + size) for size in sent]
    assert np.array_equal(trace["paper_bits_up"], 32 * trace["elements_up"])
    assert np.diff(trace["paper_bits_down"]).tolist() == [p.count * 64 * size for size in sent]
    assert trace["epoch"].tolist() == [0, 1, 1, 2, 2]  # a step takes one gradient


def test_a_models_blocks_are_its_own_and_a_gradient_of_less_rank_is_none_the_worse(tmp_path):
    """With rank 2 of two classes it is gradient descent; both columns of each gradient are opposite, so P has rank 1."""
    problem = {"data": {"generator": "gspar", "samples": 40, "dim": 6}, "objective": {"model": "softmax", "mu": 0.1}}
    found, exact = (
        run_of(tmp_path, algorithm, IDENTITY, workers={"count": 3}, stop={"rounds": rounds}, **problem)
        for algorithm, rounds in (({"name": "power-sgd", "step": "1/L"}, 40), ({"name": "gd"}, 20))
    )
    assert found.trace["loss"][::2] == pytest.approx(exact.trace["loss"], rel=1e-12)
    assert np.diff(found.trace["elements_up"]).tolist()[:2] == [3 * 2 * 6, 3 * 2 * 2]


def test_it_goes_on_from_a_gradient_of_zero():
    """From P = 0 the orthonormal columns are unit vectors: Q is 0 in that step alone."""
    blocks = bound(problem(), power_sgd(rank=2), IDENTITY).blocks
    P, v = blocks.orthogonalised(np.zeros(blocks.dim_P)), np.arange(30.0)
    for left in (left for _, left, _ in blocks.matrices(v, P, np.zeros(blocks.dim_Q))):
        np.testing.assert_allclose(left.T @ left, np.eye(2), atol=1e-15)
    assert blocks.right(v, P).any()
