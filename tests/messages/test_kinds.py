from math import ceil, inf, log2

import numpy as np
import pytest
from helpers.kinds import KINDS, messages, omega
from helpers.refusals import naming
from hypothesis import given
from hypothesis import strategies as st

from mpi_compress.algorithms.estimators.sgd import SentVariance
from mpi_compress.messages import kinds
from mpi_compress.messages.kinds import (
    Dense,
    Drawn,
    Hybrid,
    Lattice,
    Levels,
    Projections,
    SignSparse,
    Sparse,
    Ternary,
    squared_norm,
)

I = np.array([1, 4], dtype=np.uint32)
J = np.array([0, 5], dtype=np.uint32)
SIGNS = np.array([True, False])


def test_each_kind_holds_the_vector_that_its_formula_says():
    assert np.array_equal(SignSparse(6, I, SIGNS, 2.0).dense(), [0, -2, 0, 0, 2, 0])
    assert np.array_equal(Hybrid(6, I, np.array([3.0, -5]), J, SIGNS, 2.0).dense(), [-2, 3, 0, 0, -5, 2])
    levels = np.array([1, -2, 0, 3, 0], dtype=np.int32)
    assert np.array_equal(Levels(levels, np.array([0.5, 2, 7]), 2).dense(), [0.5, -1, 0, 6, 0])
    assert np.array_equal(Ternary(np.array([1, 0, -1], dtype=np.int8), 2.5).dense(), [2.5, 0, -2.5])
    assert np.array_equal(Lattice(np.array([1, -5, 0, 2]), sigma=3.0, radius=20.0).dense(), [3, -15, 0, 6])


@pytest.mark.parametrize("dim", [1, 7, 100])
def test_adding_adds_scale_times_the_vector(dim):
    rng = np.random.default_rng(0)
    for c in messages(dim, rng):
        before = rng.normal(size=dim)
        out = before.copy()
        c.add_to(out, -0.5)
        assert np.allclose(out, before - 0.5 * c.dense(), rtol=1e-14, atol=1e-14, equal_nan=True)


def test_every_kind_has_an_example():
    assert {type(c) for c in messages(5, np.random.default_rng(0))} == set(KINDS)


def test_sign_messages_are_sparse_vectors():
    for c in messages(100, np.random.default_rng(1)):
        if isinstance(c, Sparse | SignSparse | Hybrid):
            s = c.sparse()
            assert np.all(np.diff(s.indices.astype(np.int64)) > 0)
            assert np.array_equal(s.dense(), c.dense())


def test_bits_of_a_hybrid_are_the_papers():
    d, index = 1000, np.arange(7, dtype=np.uint32)
    few = Hybrid(d, index[:2], np.ones(2), index[2:], np.ones(5, dtype=bool), 1.0)
    assert few.paper_bits(32) == pytest.approx(2 * (32 + log2(d)) + 5 * log2(d) + 32)
    r = np.arange(2, 600, dtype=np.uint32)
    many = Hybrid(d, index[:2], np.ones(2), r, np.ones(r.size, dtype=bool), 1.0)
    assert many.paper_bits(32) == 2 * 32 + 2 * d + 32


def test_lattice_bits_are_those_of_lemma_2_1_and_none_where_sigma_reaches_the_radius():
    z = np.ones(50, dtype=np.int64)
    assert Lattice(z, 0.1, 3.0).paper_bits(32) == ceil(1.05 * 50 + 50 * log2(3.2 / 0.1))
    assert Lattice(z, 0.1, 3.0, radius_sent=True).paper_bits(32) == 32 + ceil(1.05 * 50 + 50 * log2(3.2 / 0.1))
    assert Lattice(z, 0.1, 3.0, stochastic=True).paper_bits(32) == ceil(1.05 * 50 + 50 * log2(3.3 / 0.1))
    assert Lattice(0 * z, 3.0, 3.0).paper_bits(32) == 0
    assert Lattice(0 * z, 3.0, 3.0).elements == 0


@pytest.mark.parametrize("dim", [1, 7, 100, 5000])
@pytest.mark.parametrize("kappa", [1e-6, 1e-3, 0.1, 0.7, 1.0])
def test_drawn_indices_are_the_sums_of_geometric_gaps_to_the_last_number(kappa, dim):
    for seed in range(20):
        ours, rng = (np.random.Generator(np.random.Philox(key=seed)) for _ in range(2))
        found = kinds.uniform_indices(dim, kappa, ours)
        many = int(kappa * dim + 6 * (kappa * dim) ** 0.5) + 16
        sums = np.cumsum(rng.geometric(kappa, many)) - 1
        while sums[-1] < dim:
            sums = np.append(sums, sums[-1] + np.cumsum(rng.geometric(kappa, many)))
        np.testing.assert_array_equal(found, sums[sums < dim])
        assert ours.random() == rng.random()


@pytest.mark.parametrize("kappa", [1e-17, 1e-18, 1e-19, 1e-300, 5e-324])
def test_a_tiny_chance_draws_nothing_whatever_the_seed(kappa):
    for seed in (0, 1, 2**63, 2**64 - 1):
        assert Drawn(12, seed, kappa, np.empty(0)).indices.size == 0


@pytest.mark.parametrize("spread", [0.2, 1, 30])
def test_levels_count_the_shorter_elias_form_of_qsgds_paper(spread):
    levels = np.rint(np.random.default_rng(2).normal(size=300) * spread).astype(np.int32)
    places = np.flatnonzero(levels)
    gaps = np.diff(places, prepend=-1)
    sparse = sum(len(omega(int(g))) + 1 + len(omega(abs(int(levels[j])))) for g, j in zip(gaps, places, strict=True))
    dense = sum(1 + len(omega(abs(int(level)) + 1)) for level in levels)
    assert Levels(levels, np.ones(3), 100).paper_bits(64) == 3 * 32 + min(sparse, dense)


def test_a_squared_norm_that_overflows_is_infinite():
    huge = np.array([3e200, -1.0])
    sent, given = Sparse(5, np.array([1, 4], dtype=np.uint32), huge), Dense(huge)
    assert squared_norm(sent) == squared_norm(given) == inf
    sums = SentVariance(*np.zeros((4, 1)))
    sums.count(huge[None], sent.as_rows())
    assert (sums.given, sums.sent) == (inf, inf)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_are_noticed_and_not_lost(bad):
    d = 4
    index = np.arange(2, dtype=np.uint32)
    for c in (
        SignSparse(d, index, SIGNS, bad),
        Hybrid(d, index, np.array([1, bad]), index + np.uint32(2), SIGNS, 1.0),
        Levels(np.ones(d, dtype=np.int32), np.array([1, bad]), 2),
        Ternary(np.ones(d, dtype=np.int8), bad),
        Lattice(np.zeros(d, dtype=np.int64), 1.0, bad),
    ):
        assert not c.is_finite()
        assert not np.all(np.isfinite(c.dense()))


def shuffled(c, rng):
    """The same vector as users may write it: indices in any order, arrays of other types."""
    if isinstance(c, Sparse):
        p = rng.permutation(c.indices.size)
        return Sparse(c.dim, c.indices[p].astype(np.int64), c.values[p].astype(np.longdouble))
    if isinstance(c, SignSparse):
        p = rng.permutation(c.indices.size)
        return SignSparse(c.dim, c.indices[p].tolist(), c.negative[p], np.float32(c.magnitude))
    if isinstance(c, Hybrid):
        p, q = rng.permutation(c.indices.size), rng.permutation(c.sign_indices.size)
        return Hybrid(c.dim, c.indices[p], c.values[p], c.sign_indices[q].astype(np.int64), c.negative[q], c.magnitude)
    if isinstance(c, Levels):
        return Levels(c.levels.astype(np.int64), c.scales.astype(np.float32), c.bucket)
    if isinstance(c, Ternary):
        return Ternary(np.repeat(c.signs.astype(np.int32), 2)[::2], c.magnitude)
    return c


@pytest.mark.parametrize("dim", [1, 2, 40])
def test_checked_gives_the_same_vector_whatever_the_order_and_types_of_its_arrays(dim):
    rng = np.random.default_rng(dim)
    for c in messages(dim, rng):
        right = shuffled(c, rng).checked(dim)
        assert type(right) is type(c)
        np.testing.assert_array_equal(right.dense(), c.dense())
        held = right.sparse()
        assert held is None or np.all(np.diff(held.indices.astype(np.int64)) > 0)


@given(st.lists(st.integers(-3, 12), max_size=8))
def test_checked_sorts_or_refuses_index_sets(indices):
    c = Sparse(10, indices, [float(j) for j in indices])
    if len(set(indices)) < len(indices) or not all(0 <= j < 10 for j in indices):
        with pytest.raises(ValueError, match="indices"):
            c.checked(10)
    else:
        right = c.checked(10)
        assert right.indices.tolist() == sorted(indices)
        assert right.values.tolist() == sorted(indices)


@pytest.mark.parametrize(("c", "says"), [
    (Dense(np.ones(3)), "values have shape (3,); it should be (4,)"),
    (Ternary(np.array([0, 2, 0, 0]), 1.0), "signs go from 0 to 2; they should be from -1 to 1"),
    (Ternary(np.zeros(4, dtype=int), np.ones(2)), "magnitude has shape (2,); it should be one number"),
    (Levels(np.array([0, 2**31, 0, 0]), np.ones(1), 4), "levels go from 0 to 2147483648"),
    (Levels(np.zeros(4, dtype=int), np.ones(1), 3), "(1,) (2,)"),
    (Levels(np.zeros(4, dtype=int), np.ones(1), 0), "bucket 0 1"),
    (SignSparse(4, [1, 2], [True], 1.0), "negative have shape (1,); it should be (2,)"),
    (SignSparse(4, [1, 2], [1, 0], 1.0), "negative are of type int64; they should be true or false"),
    (Hybrid(4, [1], [1.0], [1, 2], [True, False], 1.0), "an index is among indices and among sign_indices"),
])  # fmt: skip
def test_a_kind_refuses_arrays_that_do_not_fit_it(c, says):
    with pytest.raises(ValueError, match=naming(says)):
        c.checked(4)


BY_HAND = {
    "Dense": (lambda c, bits, b: c.values.size * b),
    "Sparse": (lambda c, bits, b: c.values.size * (bits + b)),
    "Drawn": (lambda c, bits, b: c.values.size * b),
    "Permuted": (lambda c, bits, b: c.values.size * b),
    "Cyclic": (lambda c, bits, b: c.values.size * b),
    "SignSparse": (lambda c, bits, b: b + c.indices.size * bits),
    "Ternary": (lambda c, bits, b: b + c.dim * log2(3)),
    "Powers": (lambda c, bits, b: c.dim * (1 + c.fraction + {16: 5, 32: 8, 64: 11}[b])),
    "BlockSigns": (lambda c, bits, b: c.dim + ceil(c.dim / c.block) * b),
    "Dithered": (lambda c, bits, b: b + c.dim * (1 + ceil(log2(c.most + 1)))),
    "Sketch": (lambda c, bits, b: c.table.shape[0] * c.table.shape[1] * b),
    "Eigenpairs": (lambda c, bits, b: c.values.size * (1 + kinds.side_of(c.dim)) * b),
    "Blocks": (lambda c, bits, b: sum(by_hand(part, bits > 0, b) for part in c.parts)),
    "Chained": (lambda c, bits, b: by_hand(c.placed, bits > 0, 0) + by_hand(c.values, bits > 0, b)),
}


def by_hand(c, with_indices, b):
    """⌈log2 d⌉ bits an index where they count, b a float; the sign and the exponent of a power are 6, 9 or 12 bits."""
    if type(c) is Dense and c.values.size == 0:
        return 0
    return BY_HAND[type(c).__name__](c, ceil(log2(c.dim)) if with_indices and c.dim > 1 else 0, b)


@pytest.mark.parametrize("dim", [1, 7, 64, 100])
def test_the_paper_bits_of_each_kind_are_those_by_hand_with_and_without_indices(dim):
    """`Levels`, `Lattice` and `Hybrid` follow from their numbers, above."""
    seen = set()
    for c in messages(dim, np.random.default_rng(3)):
        if type(c).__name__ in BY_HAND:
            seen.add(type(c).__name__)
            for b in (16, 32, 64):
                assert c.paper_bits(b) == c.paper_bits(b, True) == pytest.approx(by_hand(c, True, b), rel=1e-12), c
                assert c.paper_bits(b, False) == pytest.approx(by_hand(c, False, b), rel=1e-12), c
    assert seen == set(BY_HAND) or dim < 7


def test_a_scalar_beside_a_vector_is_a_float_and_a_size_an_index_among_all_of_them():
    few = Sparse(1000, np.arange(7, dtype=np.uint32), np.ones(7))
    for b in (32, 64):
        assert kinds.WithScalar(0.5, few).paper_bits(b) == 7 * (10 + b) + b
        assert kinds.WithScalar(0.5, few).paper_bits(b, False) == 7 * b + b
        assert kinds.WithSize(2, 5, few).paper_bits(b) == 7 * (10 + b) + 3
        assert kinds.WithSize(2, 5, few).paper_bits(b, False) == 7 * b + 3


def test_projections_are_a_float_each_and_samples_their_bytes():
    for b in (16, 32, 64):
        assert Projections(1000, np.ones(5), 7).paper_bits(b) == Projections(1000, np.ones(5), 7).paper_bits(b, False) == 5 * b
