"""Methods that send Hessians, against plain loops on dense matrices in NumPy; and the low-rank messages that they may have."""

import numpy as np
import pytest
from helpers.plain_literature import participants
from helpers.refusals import naming
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import mpi_compress as mc
from mpi_compress.messages.kinds import Eigenpairs, side_of, square, triangle

JOB = {
    "seed": 3,
    "data": {"generator": "gspar", "samples": 90, "dim": 9},
    "objective": {"mu": "1e-2 L"},
    "workers": {"count": 3},
    "stop": {"rounds": 14},
    "log": {"every": 1},
}
LOW_RANK = {"compressor": {"name": "low-rank", "rank": 2}}  # floats of 64 bits
TOP = {"compressor": {"name": "top-k", "k": 12}}


def play(algorithm, tmp_path, **tables):
    return mc.run({**JOB, **tables, "run": [{"label": "run", "algorithm": algorithm}]}, out=tmp_path, quiet=True)[0]


class Plain:
    """f_i of the job in plain NumPy: logistic loss, whole matrices."""

    def __init__(self, **tables):
        p = mc.problem({**JOB, **tables, "run": [{"label": "run", "algorithm": {"name": "gd"}}]})
        self.parts = [(f.rows.matrix[0], f.rows.labels, f.weight) for f in p.f_i]
        self.n, self.d, self.mu = len(self.parts), p.dim, p.mu

    def margins(self, i, x):
        A, y, _ = self.parts[i]
        return y * (A @ x)

    def value(self, i, x):
        return self.parts[i][2] * np.logaddexp(0, -self.margins(i, x)).sum() + self.mu / 2 * x @ x

    def gradient(self, i, x):
        A, y, w = self.parts[i]
        return A.T @ (-w * y / (1 + np.exp(self.margins(i, x)))) + self.mu * x

    def hessian(self, i, x):
        A, _, w = self.parts[i]
        σ = 1 / (1 + np.exp(-self.margins(i, x)))
        return (A.T * (w * σ * (1 - σ))) @ A + self.mu * np.eye(self.d)


def rank_2(M):
    values, vectors = np.linalg.eigh(M)
    kept = np.argsort(-abs(values))[:2]
    return (vectors[:, kept] * values[kept]) @ vectors[:, kept].T


def top_12(M):
    """The 12 entries of the triangle that weigh most, those off the diagonal twice as much as their squares."""
    weights = np.tril(np.where(np.eye(len(M)) > 0, abs(M), np.sqrt(2) * abs(M)))
    kept = weights >= np.sort(weights.ravel())[-12]
    return np.where(kept | kept.T, M, 0.0)


def fednl(f, C, lifted, zero, rounds):
    x, H = np.zeros(f.d), np.zeros((f.n, f.d, f.d))
    for k in range(rounds):
        if k == 0 and not zero:
            H = np.array([f.hessian(i, x) for i in range(f.n)])
        D = np.array([f.hessian(i, x) - H[i] for i in range(f.n)])
        g = np.mean([f.gradient(i, x) for i in range(f.n)], axis=0)
        x = x - np.linalg.solve(lift(H.mean(axis=0), f.mu) if lifted else H.mean(axis=0) + length(D) * np.eye(f.d), g)
        H = H + np.array([C(each) for each in D]) if zero or k else H
    return x


def length(D):
    return np.mean([np.linalg.norm(each) for each in D])


def lift(M, µ):
    values, vectors = np.linalg.eigh(M)
    return vectors @ np.diag(np.maximum(values, µ)) @ vectors.T


@pytest.mark.parametrize(("table", "C"), [(LOW_RANK, rank_2), (TOP, top_12)], ids=["low rank", "top-k"])
@pytest.mark.parametrize(
    ("matrix", "start_at"), [("shifted", "hessian"), ("shifted", "zero"), ("lifted", "hessian")]
)  # by µI alone a first step goes far
def test_fednl_is_a_plain_loop_on_matrices(table, C, matrix, start_at, tmp_path):
    played = play({"name": "fednl", "hessian": table, "matrix": matrix, "start_at": start_at}, tmp_path)
    x = fednl(Plain(), C, matrix == "lifted", start_at == "zero", 14)
    assert np.linalg.norm(played.x - x) <= 1e-11 * np.linalg.norm(x)


def test_the_search_is_a_plain_backtracking_whose_trials_are_rounds(tmp_path):
    tables = {"stop": {"rounds": 40}}
    played = play(
        {"name": "fednl", "hessian": LOW_RANK, "search": True, "start_at": "zero", "c": 0.3, "beta": 0.4}, tmp_path, **tables
    )
    f, k, trials = Plain(), 0, 0
    x, H = np.zeros(f.d), np.zeros((f.n, f.d, f.d))
    while k < 40:
        value = np.mean([f.value(i, x) for i in range(f.n)])
        g = np.mean([f.gradient(i, x) for i in range(f.n)], axis=0)
        Δ = -np.linalg.solve(lift(H.mean(axis=0), f.mu), g)
        H = H + np.array([rank_2(f.hessian(i, x) - H[i]) for i in range(f.n)])
        s, k = 0, k + 1
        while k < 40:
            k, trials = k + 1, trials + 1
            if np.mean([f.value(i, x + 0.4**s * Δ) for i in range(f.n)]) <= value + 0.3 * 0.4**s * (g @ Δ):
                x = x + 0.4**s * Δ
                break
            s += 1
    assert trials < 39, "some lengths are below 1"
    assert np.linalg.norm(played.x - x) <= 5e-9 * np.linalg.norm(x)  # 1e-16 of noise in g moves the plain loop by 8e-10 of x
    sent = np.diff([0, *played.trace["wire_bits_up"]])
    assert set(sent) == {0, f.n * 8 * (4 + 8), f.n * 8 * (4 + 8 * (9 + 1 + 2 * (9 + 1)))}


def test_workers_that_do_not_take_part_keep_what_they_sent_last(tmp_path):
    workers = {"workers": {"count": 5, "participate": 2}}
    played = play({"name": "fednl-pp", "hessian": LOW_RANK, "start_at": "zero"}, tmp_path, **workers)
    f = Plain(**workers)
    x, H, g, l = np.zeros(f.d), np.zeros((f.n, f.d, f.d)), np.zeros((f.n, f.d)), np.zeros(f.n)
    for k in range(14):
        for i in participants(5, 2, k, seed=3) if k else range(5):
            H[i] += rank_2(f.hessian(i, x) - H[i])
            l[i] = np.linalg.norm(f.hessian(i, x) - H[i])
            g[i] = (H[i] + l[i] * np.eye(f.d)) @ x - f.gradient(i, x)
        x = np.linalg.solve(H.mean(axis=0) + l.mean() * np.eye(f.d), g.mean(axis=0))
    assert np.linalg.norm(played.x - x) <= 1e-10 * np.linalg.norm(x)


def test_all_that_hessians_and_gradients_say_makes_newtons_method_superlinear(tmp_path):
    gap = play({"name": "fednl", "hessian": {"compressor": "identity"}, "matrix": "lifted"}, tmp_path, stop={"rounds": 9}).trace[
        "suboptimality"
    ]
    assert gap[5] < 1e-3
    assert gap[7] / gap[6] < 0.3 * gap[5] / gap[4]
    assert gap[-1] < 1e-12


LEAST_SQUARES = {"data": {"generator": "least-squares", "samples": 60, "dim": 9, "condition": 50.0, "noise": 0.1}, "objective": {"loss": "least-squares", "mu": 0.01}}  # fmt: skip


@pytest.mark.parametrize("name", ["fednl", "fednl-pp", "bfgs"])
def test_one_round_solves_a_quadratic_whose_hessians_and_gradients_are_whole(name, tmp_path):
    exact = {"up": {"compressor": "identity"}, "down": {"compressor": "identity"}}
    played = play({"name": name, "hessian": {"compressor": "identity"}}, tmp_path, stop={"rounds": 1}, **LEAST_SQUARES, **exact)
    assert played.trace["suboptimality"][-1] < 1e-13


@pytest.mark.parametrize("senders", [None, 1, 2, 0.7])
def test_bfgs_is_a_plain_loop(senders, tmp_path):
    exact = {"up": {"compressor": "identity"}, "down": {"compressor": "identity"}}
    asked = {"senders": senders} if senders else {}
    played = play({"name": "bfgs", "hessian": LOW_RANK, "step": 0.7, **asked}, tmp_path, **exact)
    f = Plain()
    x = before = s = np.zeros(f.d)
    for k in range(14):
        g = np.mean([f.gradient(i, x) for i in range(f.n)], axis=0)
        if k == 0:
            those = {None: [0, 1, 2], 1: [0], 2: [0, 2], 0.7: [0, 2]}[senders]  # evenly spaced: ⌈ni/m⌉
            B = lift(np.mean([rank_2(f.hessian(i, x)) for i in those], axis=0), f.mu)
        else:
            y, Bs = g - before, B @ s
            θ = 1.0 if s @ y >= 0.2 * s @ Bs else 0.8 * (s @ Bs) / (s @ Bs - s @ y)
            r = θ * y + (1 - θ) * Bs
            B = B - np.outer(Bs, Bs) / (s @ Bs) + np.outer(r, r) / (s @ r)
        before, s = g, -0.7 * np.linalg.solve(B, g)
        x = x + s
    assert np.linalg.norm(played.x - x) <= 1e-9 * np.linalg.norm(x)


@pytest.mark.parametrize("at", [0, 3])
def test_bfgs_of_few_pairs_is_a_plain_loop(at, tmp_path):
    """By the matrix H itself, built again from the pairs in each round."""
    exact = {"up": {"compressor": "identity"}, "down": {"compressor": "identity"}}
    played = play({"name": "bfgs", "hessian": LOW_RANK, "memory": 3, "at": at}, tmp_path, **exact)
    f, L, identity = Plain(), mc.problem({**JOB, "run": [{"label": "run", "algorithm": {"name": "gd"}}]}).L, np.eye(9)
    x, B, pairs, before = np.zeros(f.d), None, [], None
    for k in range(14):
        g = np.mean([f.gradient(i, x) for i in range(f.n)], axis=0)
        if k == at:
            M = np.mean([rank_2(f.hessian(i, x)) for i in range(f.n)], axis=0)
            B, pairs, before = lift(M, max(f.mu, -np.linalg.eigvalsh(M)[0])), [], None
        if before is not None:
            s, y = x - before[0], g - before[1]
            θ = min(1.0, (L - f.mu) * (s @ s) / (L * (s @ s) - s @ y)) if s @ y < f.mu * (s @ s) else 1.0
            pairs = [*pairs, (s, θ * y + (1 - θ) * L * s)][-3:]
        H = identity / L if B is None else np.linalg.inv(B)
        if pairs:
            s, y = pairs[-1]
            H = H * (s @ y) / (y @ H @ y) if B is not None else identity / min(L, y @ y / (s @ y))
        for s, y in pairs:
            V = identity - np.outer(y, s) / (s @ y)
            H = V.T @ H @ V + np.outer(s, s) / (s @ y)
        x, before = x - H @ g, (x, g)
    assert np.linalg.norm(played.x - x) <= 1e-9 * np.linalg.norm(x)


def test_bfgs_by_compressed_gradients_reaches_what_exact_ones_reach_by_fewer_bits(tmp_path):
    exact = {"up": {"compressor": "identity"}, "down": {"compressor": "identity"}}
    to = {"stop": {"rounds": 200, "suboptimality": 1e-10}}
    compressed, whole = play({"name": "bfgs"}, tmp_path, **to), play({"name": "bfgs"}, tmp_path, **to, **exact)
    assert compressed.trace["suboptimality"][-1] <= 1e-10
    assert compressed.trace["wire_bits_up"][-1] < 0.5 * whole.trace["wire_bits_up"][-1]


@pytest.mark.parametrize(
    ("algorithm", "tables", "said"),
    [
        ({"name": "fednl", "hessian": {"codecs": "dense"}}, {}, "hessian.codecs is not known"),
        ({"name": "fednl", "hessian": {"compressor": "random"}}, {}, "random"),
        (
            {"name": "fednl", "hessian": {"compressor": {"name": "low-rank", "rank": 10}}},
            {},
            "hessian.compressor: rank = 10 is more than the 9 eigenvalues",
        ),
        ({"name": "fednl", "hessian": {"compressor": {"name": "sq", "k": 3}}}, {}, "alpha is needed: 'sq'"),
        ({"name": "fednl", "search": True}, {"objective": {"mu": 0.0}}, "mu > 0 is needed"),
        ({"name": "bfgs"}, {"objective": {"mu": 0.0}}, "bfgs needs mu > 0"),
        ({"name": "bfgs", "at": 2}, {}, "at = 2 needs memory"),
        ({"name": "bfgs", "senders": 4}, {}, "senders: 4 was given, and there are 3 workers"),
        ({"name": "bfgs", "senders": 1.5}, {}, "senders: 1.5 was given, and there are 3 workers"),
        ({"name": "bfgs"}, {"objective": {"model": "softmax", "mu": 0.1}}, "name a loss of a margin"),
        ({"name": "bfgs"}, {"up": {"compressor": {"name": "random-k", "k": 2}}}, "must be a contraction"),
        ({"name": "fednl"}, {"objective": {"mu": "1e-2 L", "penalty": {"name": "ratio", "weight": 0.1}}}, "leave objective.penalty out"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_one_line(algorithm, tables, said, tmp_path):
    with pytest.raises(mc.UserError, match=naming(said)):
        play(algorithm, tmp_path, **tables)


VECTORS = st.integers(1, 40).flatmap(
    lambda d: arrays(np.float64, d, elements=st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-150))
)


@given(VECTORS)
def test_a_triangle_is_its_matrix_with_the_same_norm(v):
    M = square(v)
    assert (M == M.T).all()
    assert len(M) == side_of(v.size)
    assert side_of(v.size) * (side_of(v.size) - 1) // 2 < v.size
    np.testing.assert_allclose(triangle(M)[: v.size], v, rtol=1e-15)
    assert np.linalg.norm(M) == pytest.approx(np.linalg.norm(v))


@given(VECTORS, st.integers(1, 3))
def test_low_rank_keeps_the_eigenvalues_that_are_largest(v, rank):
    compressor = mc.compressors.compressors["low-rank"](min(rank, side_of(v.size)))
    c = compressor.compress(v, None)
    M = square(v)
    left = np.sort(abs(np.linalg.eigvalsh(M)))[: max(0, len(M) - rank)]
    error = np.linalg.norm(v - c.dense())
    assert error <= np.linalg.norm(left) + 1e-9 * (1 + np.linalg.norm(v))
    assert error**2 <= (1 - compressor.delta(v.size)) * (v @ v) + 1e-9 * (1 + v @ v)
    assert c.elements == c.values.size * (1 + side_of(v.size))
    assert c.paper_bits(32) == 32 * c.elements


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize(("least", "most", "equal"), [(-9, 4, 1), (-1, 9, 1), (2, 2, 49), (-3, -3, 49), (-5, 5, 25), (-2, 0, 40)])
def test_low_rank_of_a_larger_matrix_finds_both_ends_and_equal_eigenvalues(least, most, equal, rank):
    rng, s = np.random.default_rng(rank), 50
    eigenvalues = np.sort(np.concatenate([np.full(equal, least), np.linspace(least, most, s - equal)]))
    for Q in (np.eye(s), np.linalg.qr(rng.normal(size=(s, s)))[0]):
        v = triangle((Q * eigenvalues) @ Q.T)
        c = mc.compressors.compressors["low-rank"](rank).compress(v, None)
        np.testing.assert_allclose(np.sort(abs(c.values)), np.sort(abs(eigenvalues))[-rank:], rtol=1e-13)
        np.testing.assert_allclose(c.vectors @ c.vectors.T, np.eye(rank), atol=1e-13)
        assert np.linalg.norm(v - c.dense()) ** 2 == pytest.approx(np.sum(np.sort(abs(eigenvalues))[:-rank] ** 2), rel=1e-12)


def test_low_rank_attains_its_contraction():
    v = triangle(np.diag([1.0, -1.0, 1.0, 1.0]))
    compressor = mc.compressors.compressors["low-rank"](3)
    assert np.linalg.norm(v - compressor.compress(v, None).dense()) ** 2 == pytest.approx((1 - compressor.delta(v.size)) * 4)
    assert isinstance(compressor.compress(np.array([np.nan, 1.0]), None), Eigenpairs)
    assert not compressor.compress(np.array([np.nan, 1.0]), None).is_finite()
