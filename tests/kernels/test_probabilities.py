"""Probabilities are the best there are for their budget, and coordinates are drawn with exactly these."""

from math import log2

import numpy as np
import pytest
from helpers.vectors import fixed, hard, real
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from mpi_compress.kernels import probabilities, quantize
from mpi_compress.kernels.probabilities import Draws, Sizes, levels_of_budget, levels_of_variance, sizes_of
from mpi_compress.messages.compressors.at_random import GSpar
from mpi_compress.messages.compressors.levels import QSGD

FAST = settings(max_examples=100, deadline=None, derandomize=True)


def size_of(v):
    """The size of one vector."""
    return Sizes(*(each[0] for each in sizes_of(v[None])))


def level_of_budget(v, T):
    return levels_of_budget(v[None], sizes_of(v[None]), T)[0]


def level_of_variance(v, epsilon):
    return levels_of_variance(v[None], sizes_of(v[None]), epsilon)[0]


def shares(v):
    """|v_j| over the largest, and the p_j of a level."""
    return np.abs(v) / (np.max(np.abs(v)) or 1.0)


def p_of(v, level):
    a = np.abs(v) * size_of(v).scale
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(a == 0, 0.0, np.minimum(a / level, 1.0))


def increase(a, p):
    """Σ a_j²/p_j over the nonzeros."""
    return np.sum(a[p > 0] ** 2 / p[p > 0])


def solver(objective, constraint, p0):
    """SciPy's minimum over 0 < p ≤ 1."""
    found = minimize(
        objective, p0, method="SLSQP", bounds=[(1e-6, 1)] * p0.size, constraints=[constraint],
        options={"maxiter": 500, "ftol": 1e-12},
    )  # fmt: skip
    return found.fun


@given(v=hard())
@FAST
def test_sizes_are_exact_at_any_scale(v):
    size, peak = size_of(v), np.max(np.abs(v))
    assert size.peak == peak
    assert size.nonzeros == np.count_nonzero(v)
    if peak > 0:
        assert size.norm == pytest.approx(peak * np.linalg.norm(v / peak), rel=1e-12, abs=1e-323)
        assert size.sum / (peak * size.scale) == pytest.approx(np.sum(shares(v)), rel=1e-12)


@given(v=hard(), T=st.integers(1, 30), stop=st.sampled_from([0, 1, 12]))
@FAST
def test_probabilities_for_a_budget_sum_to_it_exactly_whether_steps_or_a_sort_find_them(v, T, stop):
    """T is clamped to the nonzeros."""
    before, probabilities._NEWTON_STEPS = probabilities._NEWTON_STEPS, stop
    try:
        p = p_of(v, level_of_budget(v, T))
    finally:
        probabilities._NEWTON_STEPS = before
    assert np.sum(p) == pytest.approx(min(T, np.count_nonzero(v)), rel=1e-12)
    assert np.all(p[v != 0] > 0)


@given(v=hard(), epsilon=st.floats(1e-6, 1e3), stop=st.sampled_from([0, 1, 12]))
@FAST
def test_algorithm_2_spends_its_variance_exactly_whether_steps_or_a_sort_find_it(v, epsilon, stop):
    before, probabilities._NEWTON_STEPS = probabilities._NEWTON_STEPS, stop
    try:
        p, a = p_of(v, level_of_variance(v, epsilon)), shares(v)
    finally:
        probabilities._NEWTON_STEPS = before
    assert increase(a, p) == pytest.approx((1 + epsilon) * np.sum(a**2), rel=1e-9)


@pytest.mark.parametrize("stop", [0, 12])
def test_magnitudes_over_all_scales_need_no_more_than_a_sort(stop, monkeypatch):
    monkeypatch.setattr(probabilities, "_NEWTON_STEPS", stop)
    v = 0.5 ** np.arange(1000.0)
    for T in (1, 10, 500, 999):
        assert np.sum(p_of(v, level_of_budget(v, T))) == pytest.approx(T, rel=1e-12)
    for epsilon in (1e-12, 1e-6, 1.0):
        p = p_of(v, level_of_variance(v, epsilon))
        assert increase(v, p) == pytest.approx((1 + epsilon) * np.sum(v**2), rel=1e-9)


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds:RuntimeWarning")  # of SciPy before 1.16
@pytest.mark.parametrize("seed", range(8))
def test_no_probabilities_of_the_same_sum_have_less_variance(seed):
    rng = np.random.default_rng(seed)
    v = rng.standard_cauchy(6) if seed % 2 else rng.standard_normal(6)
    for T in (1, 2, 4):
        ours = increase(v, p_of(v, level_of_budget(v, T)))
        best = solver(
            lambda p, ours=ours: np.sum(v**2 / p) / ours,
            {"type": "eq", "fun": lambda p, T=T: np.sum(p) - T},
            np.full(6, T / 6),
        )
        assert best >= 1 - 1e-7
        for _ in range(50):  # any other p of that sum
            p = rng.dirichlet(np.ones(6)) * T
            if np.all(p <= 1):
                assert ours <= np.sum(v**2 / p) * (1 + 1e-12)


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds:RuntimeWarning")  # of SciPy 1.15, which clips them
@pytest.mark.parametrize("seed", range(8))
def test_no_feasible_probabilities_have_a_smaller_sum_than_algorithm_2(seed):
    rng = np.random.default_rng(seed)
    v = rng.standard_cauchy(6) if seed % 2 else rng.standard_normal(6)
    for epsilon in (0.1, 1.0, 3.0):
        ours = np.sum(p_of(v, level_of_variance(v, epsilon)))
        allowed = (1 + epsilon) * np.sum(v**2)
        best = solver(np.sum, {"type": "ineq", "fun": lambda p, a=allowed: 1 - np.sum(v**2 / p) / a}, np.ones(6))
        assert ours <= best * (1 + 1e-6)


def algorithm_2(g, epsilon):
    """The printed algorithm, with eq. 11."""
    a = np.sort(np.abs(g))[::-1]
    for k in range(g.size):
        tail, allowed = a[k:].sum(), epsilon * np.sum(a**2) + np.sum(a[k:] ** 2)
        if a[k] * tail <= allowed:
            break
    return np.where(np.abs(g) > (a[k - 1] if k else np.inf) * (1 - 1e-15), 1.0, np.abs(g) * tail / allowed)


def algorithm_3(g, kappa, passes):
    """The printed algorithm; p is returned where all that is not certain is 0."""
    d = g.size
    p = np.minimum(kappa * d * np.abs(g) / np.sum(np.abs(g)), 1)
    for _ in range(passes):
        active = p != 1
        if np.sum(p[active]) == 0:
            break
        c = (kappa * d - d + np.sum(active)) / np.sum(p[active])
        p[active] = np.minimum(c * p[active], 1)
        if c <= 1:
            break
    return p


@pytest.mark.parametrize("name", [n for n in fixed(40) if n not in ("zero", "tiny", "huge")])
def test_algorithms_2_and_3_are_the_printed_ones(name):
    g = fixed(40)[name]
    for epsilon in (1e-3, 0.1, 1.0, 10.0):
        p = p_of(g, GSpar(epsilon=epsilon).levels(g[None], sizes_of(g[None]))[0])
        np.testing.assert_allclose(p, algorithm_2(g, epsilon), rtol=1e-12)
    for kappa in (0.05, 0.3, 0.9, 1.0):
        for passes in (0, 1, 2, 5):
            p = p_of(g, GSpar(kappa=kappa, passes=passes).levels(g[None], sizes_of(g[None]))[0])
            np.testing.assert_allclose(p, algorithm_3(g, kappa, passes), rtol=1e-12)


def assert_lemma_3_and_theorem_4(g, sizes, b=32):
    a, d = np.sort(np.abs(g))[::-1], g.size
    for s in sizes:
        rho = a[s:].sum() / a[:s].sum()
        p = p_of(g, GSpar(epsilon=rho).levels(g[None], sizes_of(g[None]))[0])
        assert np.sum(p) <= (1 + rho) * s * (1 + 1e-9), f"Lemma 3, s = {s}"
        certain, others = np.sum(p == 1), np.sum(p[p < 1])
        if rho <= 1:  # the dense string is counted as 2d bits in §2.3, but as d in Theorem 4
            bits = min(certain * (b + log2(d)) + others * log2(d) + b, certain * b + 2 * d + b)
            assert bits <= (s * (b + log2(d)) + min(rho * s * log2(d), d) + b) * (1 + 1e-9), f"Theorem 4, s = {s}"


@given(v=hard().filter(np.any))
@FAST
def test_lemma_3_and_theorem_4_hold_for_every_s(v):
    assert_lemma_3_and_theorem_4(v / np.max(np.abs(v)), range(1, v.size + 1))


def test_lemma_3_and_theorem_4_hold_on_real_gradients():
    for g in real().values():
        assert_lemma_3_and_theorem_4(g, [s for s in (1, 10, 100, 1000, 10_000) if s <= g.size])


@given(v=hard(most=8), level=st.floats(0.01, 4))
@settings(FAST, max_examples=15)
def test_bytes_decide_with_the_exact_probability(v, level):
    """Over all 256 bytes: those below ⌊256p⌋ say yes, and the equal one leaves 256p − ⌊256p⌋ to the second draw."""
    a = shares(v)
    x = np.minimum(a * (256 / level), 256.0)
    row, one, levels = a[None], np.ones(1), np.array([level])
    yes = np.zeros(v.size)
    for byte in range(256):
        of_rows = row, a.max(keepdims=True), one, levels, np.full((1, v.size), byte, dtype=np.uint8)
        found, ends, tied = probabilities.likely(*of_rows)
        for spare, weight in ((0.0, 0), (1.0, 1)):
            kept, until = found[: ends[0]].copy(), ends.copy()
            values, certain = probabilities.settle(*of_rows, np.full(tied[0], spare), kept, until)
            kept = kept[: until[0]]
            assert np.array_equal(certain, x[kept] == 256)
            assert np.array_equal(values, a[kept])
            if weight:
                yes[kept] += 1
            else:
                low = set(kept.tolist())
        assert tied[0] == np.sum((np.floor(x) == byte) & (a != 0))
        assert set(found[: ends[0]].tolist()) >= low
    np.testing.assert_array_equal(yes, np.where(a == 0, 0, np.minimum(np.floor(x), 256)))


@given(x=st.lists(st.floats(-20, 20), min_size=1, max_size=4), out=st.sampled_from([np.int8, np.int32, np.int64]))
@FAST
def test_bytes_round_to_the_exact_mean(x, out):
    """The mean over all bytes and the second draw is x: 256 outcomes, one of them shared out by the remainder of 256·|x|."""
    for value in x:
        v, u = np.full((1, 256), value), np.arange(256, dtype=np.uint8)[None]
        for scale in (1.0, 2.0**-1000, 2.0**900):
            levels, scales = np.empty((1, 256), dtype=out), np.array([[scale]])
            tied, counts = quantize.quantize(v * scale, scales, 256, 100, u, levels)
            assert np.all(np.abs(levels - value) < 1)
            up, down = levels.copy(), levels.copy()
            quantize.settle(v * scale, scales, 256, 100, tied, counts, np.zeros(counts[0]), up)
            quantize.settle(v * scale, scales, 256, 100, tied, counts, np.full(counts[0], 1.0), down)
            rest = 256 * abs(value) - np.floor(256 * abs(value))
            mean = np.sum(rest * up.astype(float) + (1 - rest) * down) / 256
            assert mean == pytest.approx(value, abs=1e-12)


@given(v=hard(most=20), bucket=st.integers(1, 20))
@FAST
def test_bucket_norms_and_peaks_are_those_of_slices(v, bucket):
    buckets = [v[i : i + bucket] for i in range(0, v.size, bucket)]
    peaks, norms = (QSGD(1, norm)._norms(v[None], bucket)[0] for norm in ("max", "l2"))
    np.testing.assert_array_equal(peaks, [np.max(np.abs(b)) for b in buckets])
    wanted = [p * np.linalg.norm(b / p) if p > 0 else 0.0 for p, b in zip(peaks, buckets, strict=True)]
    np.testing.assert_allclose(norms, wanted, rtol=1e-12, atol=1e-323)


def test_the_nearest_point_is_that_of_numpy_where_floats_are_fine_enough():
    v = np.random.default_rng(0).uniform(-1e3, 1e3, (3, 1000))
    out = np.zeros(v.shape, dtype=np.int64)
    quantize.round_to_nearest(v, 0.01, np.array([True, False, True]), out)
    assert np.all(np.abs(v - 0.01 * out)[::2] <= 0.005 * (1 + 1e-9))
    assert not out[1].any()


def test_what_is_certain_keeps_its_value_and_the_others_their_sign():
    certain = np.array([True, False, True, False])
    drawn = Draws(np.arange(4, dtype=np.uint32), np.array([3.0, -1.0, -4.0, 0.5]), certain, np.array([3, 4]), np.array([2.0, 7.0]))
    assert drawn.weighted.tolist() == [3.0, -2.0, -4.0, 7.0]
