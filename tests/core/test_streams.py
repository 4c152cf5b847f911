"""Randomness has an address, (seed, role, worker, round); and sums of floats are left folds."""

import math

import numpy as np
import pytest

from mpi_compress.core.streams import Pool, Role, Round, Streams
from mpi_compress.core.sums import added


def drawn(seed, role, who, k, count=5):
    return Streams(seed).at(role, who, k).random(count).tolist()


def test_a_draw_depends_on_its_address_alone():
    streams = Streams(7)
    streams.at(Role.WORKER, 3, 11).random(1000)  # whatever was drawn before
    streams.at(Role.WORKER, 2, 11).integers(10)
    assert streams.at(Role.WORKER, 3, 12).random(5).tolist() == drawn(7, Role.WORKER, 3, 12)


def test_a_round_goes_on_with_one_stream_and_keeps_the_batch_apart():
    t = Round(4, Streams(1), Role.WORKER, 2)
    first, batch, second = t.rng.random(3), t.batch_at(4).integers(100, size=8), t.rng.random(3)
    whole = Streams(1).at(Role.WORKER, 2, 4).random(6)
    assert np.array_equal(np.r_[first, second], whole)
    assert np.array_equal(batch, Round(9, Streams(1), Role.WORKER, 2).batch_at(4).integers(100, size=8))


def test_every_node_draws_the_shared_stream_alike():
    draws = [
        Round(4, Streams(1), role, who).shared.random(3).tolist()
        for role, who in ((Role.WORKER, 0), (Role.WORKER, 5), (Role.MASTER, 0))
    ]
    assert draws[0] == draws[1] == draws[2]


def test_a_pool_is_read_in_order_and_again_and_gives_what_a_generator_gives():
    words = np.random.default_rng(1).integers(0, 2**64 - 1, 100_000, dtype=np.uint64, endpoint=True)
    pool = Pool(words)
    first = pool.integers(0, 2**64 - 1, 60_000, dtype=np.uint64, endpoint=True)
    np.testing.assert_array_equal(first, words[:60_000])
    np.testing.assert_array_equal(
        pool.integers(0, 2**64 - 1, 60_000, dtype=np.uint64, endpoint=True), first
    )  # the rest is too short
    uniform = pool.random(30_000)
    assert 0 <= uniform.min() < uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 5 / np.sqrt(12 * uniform.size)
    gaps = pool.geometric(0.1, 30_000)
    assert gaps.min() == 1
    assert abs(gaps.mean() - 10) < 5 * np.sqrt(90 / gaps.size)
    assert np.all(pool.geometric(1.0, 3) == 1)
    hits = np.bincount(np.concatenate([pool.choice(20, 5) for _ in range(4000)]), minlength=20)
    assert np.abs(hits - 1000).max() < 5 * np.sqrt(750)
    with pytest.raises(ValueError, match="whole words"):
        pool.integers(10)


def test_a_pool_is_read_to_its_last_word():
    pool = Pool(np.arange(4, dtype=np.uint64))
    assert [pool.integers(0, 2**64 - 1, size=2, endpoint=True).tolist() for _ in range(3)] == [[0, 1], [2, 3], [0, 1]]


def test_a_sum_is_the_left_fold_where_a_compensated_one_differs():
    assert added([0.1] * 10) == 0.9999999999999999 != math.fsum([0.1] * 10)
    assert added([1.0, 1e100, 1.0, -1e100]) == 0.0 != math.fsum([1.0, 1e100, 1.0, -1e100])


def test_it_begins_at_the_start_and_keeps_whole_numbers_whole():
    assert added([-1.0, 2.0**-54], start=1.0) == 2.0**-54 != 1.0 + added([-1.0, 2.0**-54])
    assert repr(added([])) == "0"
    assert repr(added(iter([3, 4]), start=5)) == "12"
