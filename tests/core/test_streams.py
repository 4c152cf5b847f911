"""Randomness has an address, (seed, role, worker, round); and sums of floats are left folds."""

import math

import numpy as np

from mpi_compress.core.streams import Pool, Role, Round, Rounds, Streams
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
    first, again = (pool.words([0], np.array([60_000])) for _ in range(2))  # the rest is too short
    np.testing.assert_array_equal(first, words[:60_000])
    np.testing.assert_array_equal(again, first)
    uniform = pool.random(30_000)
    assert 0 <= uniform.min() < uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 5 / np.sqrt(12 * uniform.size)
    gaps = pool.geometric(0.1, 30_000)
    assert gaps.min() == 1
    assert abs(gaps.mean() - 10) < 5 * np.sqrt(90 / gaps.size)
    assert np.all(pool.geometric(1.0, 3) == 1)
    hits = np.bincount(np.concatenate([pool.choice(20, 5) for _ in range(4000)]), minlength=20)
    assert np.abs(hits - 1000).max() < 5 * np.sqrt(750)


def test_a_pool_is_read_to_its_last_word():
    pool = Pool(np.arange(4, dtype=np.uint64))
    assert [pool.words([0, 1], np.array([1, 1])).tolist() for _ in range(3)] == [[0, 1], [2, 3], [0, 1]]


def test_a_sum_is_the_left_fold_where_a_compensated_one_differs():
    assert added([0.1] * 10) == 0.9999999999999999 != math.fsum([0.1] * 10)
    assert added([1.0, 1e100, 1.0, -1e100]) == 0.0 != math.fsum([1.0, 1e100, 1.0, -1e100])


def test_it_begins_at_the_start_and_keeps_whole_numbers_whole():
    assert added([-1.0, 2.0**-54], start=1.0) == 2.0**-54 != 1.0 + added([-1.0, 2.0**-54])
    assert repr(added([])) == "0"
    assert repr(added(iter([3, 4]), start=5)) == "12"


def rows_of(m, k=11, role=Role.WORKER):
    return Rounds(k, Streams(7), role, np.arange(m) + 3)


def test_rows_draw_what_the_streams_of_their_nodes_give():
    """Words, then floats in numbers of their own, then words again: each row goes on with its stream."""
    t, counts = rows_of(9), np.array([0, 1, 2, 3, 4, 5, 6, 7, 30])
    first, floats, more = t.words(3), np.split(t.random(counts), np.cumsum(counts))[:-1], t.words(6)
    for i in range(9):
        rng = Streams(7).at(Role.WORKER, i + 3, 11)
        np.testing.assert_array_equal(first[i], rng.integers(0, 2**64 - 1, 3, dtype=np.uint64, endpoint=True))
        np.testing.assert_array_equal(floats[i], rng.random(counts[i]))
        np.testing.assert_array_equal(more[i], rng.integers(0, 2**64 - 1, 6, dtype=np.uint64, endpoint=True))


def test_rows_some_of_them_and_the_rounds_of_single_nodes_share_their_streams():
    """A draw of 32 bits leaves half a word to the next one, whatever words are drawn between."""
    t = rows_of(6)
    mask = np.array([True, False, True, True, False, False])
    seen = [[] for _ in range(6)]
    for i in range(6):
        seen[i].append(t[i].rng.integers(100, dtype=np.uint32))
    for i, words in zip(np.flatnonzero(mask), t[mask].words(2), strict=True):
        seen[i].extend(words)
    for i, float_ in zip(range(1, 4), t[1:4].random(np.ones(3, dtype=int)), strict=True):
        seen[i].append(float_)
    for i in (5, 0, 2):
        seen[i].append(t[i].rng.integers(100, dtype=np.uint32))
        seen[i].extend(Rounds.of(t[i]).words(5)[0])
    for i, words in enumerate(t[np.arange(6)][::1].words(1)):
        seen[i].extend(words)
    for i in range(6):
        rng = Streams(7).at(Role.WORKER, i + 3, 11)

        def words(n, rng=rng):
            return list(rng.integers(0, 2**64 - 1, n, dtype=np.uint64, endpoint=True))

        wanted = [rng.integers(100, dtype=np.uint32), *(words(2) if mask[i] else []), *(rng.random(1) if 1 <= i < 4 else [])]
        wanted += [rng.integers(100, dtype=np.uint32), *words(5)] if i in (5, 0, 2) else []
        assert seen[i] == wanted + words(1)


def test_rows_have_the_rounds_of_their_nodes():
    t = Rounds(4, Streams(1), Role.WORKER, np.array([2, 5]), states=["two", "five"], second=1.5)
    one = Round(4, Streams(1), Role.WORKER, 5, state="five", second=1.5)
    for row in (t[1], t[1:][0], t[np.array([False, True])][0]):
        assert (row.who, row.k, row.state, row.second, row.common_seed) == (5, 4, "five", 1.5, one.common_seed)
        assert row.rng.random(2).tolist() == one.rng.random(2).tolist()
    assert (t.common_seed, t.shared.random(), len(t)) == (one.common_seed, one.shared.random(), 2)


def test_one_row_draws_from_the_pool_of_its_round():
    pool = np.arange(100, dtype=np.uint64) << np.uint64(40)
    t = Round(0, Streams(0), Role.WORKER, own=Pool(pool))
    rows = Rounds.of(t)
    assert rows.words(3).tolist() == [pool[:3].tolist()]
    assert t.rng.random(1) == (pool[3] >> np.uint64(11)) * 2.0**-53
    assert rows.random(np.array([2])).tolist() == ((pool[4:6] >> np.uint64(11)) * 2.0**-53).tolist()
