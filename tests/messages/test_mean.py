"""Means of what workers sent, against plain sums."""

import numpy as np
import pytest
from helpers.kinds import index_set
from hypothesis import given
from hypothesis import strategies as st

from mpi_compress.core.errors import UserError
from mpi_compress.messages.kinds import Dense, Hybrid, SignSparse, Sparse, Ternary
from mpi_compress.messages.mean import Averager

I = np.array([1, 4], dtype=np.uint32)
J = np.array([0, 5], dtype=np.uint32)
SIGNS = np.array([True, False])


def test_the_mean_of_sparse_kinds_is_sparse_and_of_others_dense():
    a = SignSparse(6, I, SIGNS, 2.0)
    b = Hybrid(6, I[:1], np.array([4.0]), J[:1], SIGNS[:1], 1.0)
    mean = Averager(6).mean([a, b])
    assert isinstance(mean, Sparse)
    assert np.array_equal(mean.dense(), (a.dense() + b.dense()) / 2)
    mean = Averager(3).mean([Ternary(np.array([1, 0, -1], dtype=np.int8), 2.5), Dense(np.ones(3))])
    assert isinstance(mean, Dense)
    assert np.array_equal(mean.dense(), [1.75, 0.5, -0.75])


@given(st.lists(st.tuples(st.integers(0, 2**32), st.integers(0, 6)), min_size=1, max_size=8), st.integers(8, 60))
def test_a_mean_adds_in_the_order_of_workers_whatever_is_sent_and_by_whom(workers, dim):
    parts = []
    for seed, T in workers:
        rng = np.random.default_rng(seed)
        values = rng.choice([-0.0, 0.0, 1e300, -1e300, 1e-300, *rng.normal(size=4)], T)
        parts.append(Sparse(dim, index_set(rng, dim, T), values))
    parts += [parts[-1], *parts[:2]]  # workers may share one message
    total = np.zeros(dim)
    for part in parts:
        total[part.indices] += part.values
    with np.errstate(over="ignore"):
        total /= len(parts)
    mean = Averager(dim).mean(parts)
    assert mean.dense().tobytes() == (total + 0.0).tobytes()
    if isinstance(mean, Sparse):
        assert mean.indices.tolist() == sorted({i for part in parts for i in part.indices.tolist()})


KINDS = [
    Sparse(6, I, np.ones(2)), SignSparse(6, I, SIGNS, 2.0), Hybrid(6, I[:1], np.ones(1), J, SIGNS, 1.0), Dense(np.ones(6)),
    Ternary(np.ones(6, dtype=np.int8), 2.5),
]  # fmt: skip


@pytest.mark.parametrize("part", KINDS, ids=lambda part: type(part).__name__)
@pytest.mark.parametrize("size", [0, 3])
def test_a_vector_is_not_added_to_a_shorter_one(part, size):
    out = np.zeros(20)
    with pytest.raises(ValueError, match=r"should have the same length|has an index beyond"):
        part.add_to(out[4 : 4 + size])
    assert not np.delete(out, slice(4, 4 + size)).any()


def test_indices_without_a_value_each_are_refused():
    with pytest.raises(ValueError, match="should have the same length"):
        Sparse(6, I, np.ones(9)).add_to(np.zeros(6))


@pytest.mark.parametrize("other", [Sparse(9, I, np.ones(2)), Dense(np.ones(3))], ids=["sparse", "dense"])
def test_messages_of_different_lengths_have_no_mean(other):
    averager = Averager(6)
    with pytest.raises(UserError, match=r"^mean: the messages have .* coordinates; only vectors of one length have a mean$"):
        averager.mean([KINDS[0], other])
    assert np.array_equal(averager.mean([KINDS[0]]).dense(), KINDS[0].dense())


@pytest.mark.parametrize("dim", [3, 40_000])
@pytest.mark.parametrize("sparse", [True, False])
def test_a_mean_has_the_length_of_its_parts_whatever_the_run_has(dim, sparse):
    """Two vectors in one message, of a method of one's own."""
    many = np.arange(20, dtype=np.uint32) * (dim // 20) if dim > 20 else np.arange(3, dtype=np.uint32)
    parts = [Sparse(dim, many, np.full(many.size, v)) if sparse else Dense(np.full(dim, v)) for v in (1.0, 3.0)]
    mean = Averager(6).mean(parts).dense()
    assert mean.size == dim
    assert mean[many[-1]] == 2.0


def test_means_that_follow_each_other_hold_the_same_coordinates():
    """More coordinates than plain Python adds; the scratch space is clear again after each mean."""
    averager, rng = Averager(200), np.random.default_rng(6)
    parts = [Sparse(200, np.sort(rng.choice(200, 20, replace=False)).astype(np.uint32), rng.standard_normal(20)) for _ in range(3)]
    wanted = np.mean([part.dense() for part in parts], axis=0)
    for _ in range(2):
        mean = averager.mean(parts)
        assert isinstance(mean, Sparse)
        assert np.allclose(mean.dense(), wanted, rtol=1e-15, atol=0)
