"""Means of what workers sent, against plain sums."""

import numpy as np
from helpers.kinds import index_set
from hypothesis import given
from hypothesis import strategies as st

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
