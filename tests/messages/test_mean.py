"""Means of what workers sent, against plain sums; the tree of folds: sums by hand, every split of workers to ranks, who gets which sums."""

import math
from itertools import pairwise

import numpy as np
import pytest
from helpers.kinds import index_set
from hypothesis import given
from hypothesis import strategies as st

from mpi_compress.core.errors import CorruptMessage, UserError
from mpi_compress.exchange.base import heads, last_below
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.compressors import compressors
from mpi_compress.messages.kinds import Compressed, Dense, Hybrid, SignSparse, Sparse, Ternary
from mpi_compress.messages.link import REFUSED, SILENT, Link, Message
from mpi_compress.messages.mean import LEAF, Averager, Folded, PartialSum, Tree, TreeAdder, as_message

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


def link(dim: int, kind: str = "identity") -> Link:
    compressor = {"name": "identity"} if kind == "identity" else {"name": kind, "k": 1}
    return Link(compressors.build(compressor, "up"), codecs.build({"name": "auto", "float": 64}, "codec"), dim)


def pieces_of(messages: list[Message]) -> dict[range, Message]:
    return {range(i, i + 1): message for i, message in enumerate(messages)}


def sent(vectors: list[Compressed]) -> list[Message]:
    """Messages of these vectors, as a process has them that has decoded them."""
    return [Message(np.ones(1, np.uint8), vector) for vector in vectors]


def total(vectors: list[Compressed], leaf: int = LEAF) -> Compressed:
    dim = vectors[0].dim
    found = TreeAdder(Tree(len(vectors), leaf), dim).total(pieces_of(sent(vectors)), link(dim))
    assert found is not None
    return found


BY_HAND = {
    1: lambda v: v[0],
    2: lambda v: v[0] + v[1],
    3: lambda v: v[0] + (v[1] + v[2]),
    5: lambda v: (v[0] + v[1]) + (v[2] + (v[3] + v[4])),
    9: lambda v: ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + (v[7] + v[8]))),
}


@pytest.mark.parametrize("n", BY_HAND)
def test_small_sums_by_hand_with_leaves_of_one_worker(n):
    v = np.random.default_rng(n).normal(size=(n, 50)) * 10.0 ** np.arange(n)[:, None]
    assert total([Dense(each) for each in v], leaf=1).dense().tobytes() == BY_HAND[n](v).tobytes()
    indices = np.arange(50, dtype=np.uint32)
    sparse = total([Sparse(50 * 2 * n, indices, each) for each in v], leaf=1)
    assert isinstance(sparse, Sparse)
    assert sparse.values.tobytes() == BY_HAND[n](v).tobytes()


def test_leaves_of_16_to_31_workers_are_added_in_worker_order():
    for n in (1, 15, 16, 31, 32, 63, 64, 100, 1000, 10_007):
        tree = Tree(n)
        leaves = [tree.node(tree.height, a) for a in range(2**tree.height)]
        assert [i for leaf in leaves for i in leaf] == list(range(n))
        assert n < 32 or all(16 <= len(leaf) <= 32 for leaf in leaves)
        assert (tree.height == 0) == (n < 32)
    v = [Dense(each) for each in np.random.default_rng(0).normal(size=(40, 30))]
    assert total(v[:31]).dense().tobytes() == Averager(30).mean(v[:31], 1).dense().tobytes()
    left, right = (Averager(30).mean(v[part], 1).dense() for part in (slice(0, 20), slice(20, 40)))
    assert total(v).dense().tobytes() == (left + right).tobytes()
    assert total(v).dense().tobytes() != Averager(30).mean(v, 1).dense().tobytes()


@st.composite
def splits(draw):
    """Numbers of workers, a leaf, and cuts of the workers into ranks' blocks."""
    n, leaf = draw(st.integers(1, 60)), draw(st.sampled_from([1, 2, 3, 16]))
    return n, leaf, sorted(draw(st.lists(st.integers(0, n), max_size=8))), draw(st.integers(0, 2**32))


@given(splits(), st.sampled_from(["sparse", "dense", "mixed"]))
def test_any_split_of_the_workers_gives_the_same_bits(split, kind):
    n, leaf, cuts, seed = split
    rng, dim = np.random.default_rng(seed), 40

    def values(T):
        return rng.choice([-0.0, 0.0, 1e300, -1e300, 1e-300, *rng.normal(size=4)], T)

    vectors: list[Compressed] = []
    for i in range(n):
        T = rng.integers(0, 3)
        whole = kind == "dense" or (kind == "mixed" and i % 3 == 0)
        vectors.append(Dense(values(dim)) if whole else Sparse(dim, index_set(rng, dim, T), values(T)))
    adder, of, messages = TreeAdder(Tree(n, leaf), dim), link(dim), sent(vectors)
    with np.errstate(over="ignore", invalid="ignore"):
        alone, pieces = total(vectors, leaf), {}
        for start, stop in pairwise([0, *cuts, n]):
            own = adder.added({range(i, i + 1): messages[i] for i in range(start, stop)}, range(start, stop), of)
            crossed = {r: Message(as_message(piece).data.copy(), messages[r.start].content if len(r) == 1 else None) for r, piece in own.items()}
            pieces.update(adder.added({**pieces, **crossed}, range(stop), of))  # as a rank that has all workers before these
        found = adder.total(pieces, of)
    assert found is not None
    assert type(found) is type(alone)
    assert found.dense().tobytes() == alone.dense().tobytes()
    in_order = Averager(dim).mean(vectors, 1)
    assert type(found) is type(in_order)
    if isinstance(found, Sparse) and isinstance(in_order, Sparse):
        assert found.indices.tolist() == in_order.indices.tolist()


@given(st.integers(1, 200), st.integers(0, 2**32))
def test_a_mean_by_the_tree_is_as_near_to_the_real_one_as_its_height_says(n, seed):
    v = np.random.default_rng(seed).normal(size=(n, 3))
    mean = Averager(3).mean(Folded(total([Dense(each) for each in v]), n)).dense()
    exact = [math.fsum(column) / n for column in v.T]
    additions = 32 + Tree(n).height  # that a worker's vector takes part in, at most
    assert np.all(np.abs(mean - exact) <= (additions + 2) * 2**-53 * np.abs(v).mean(axis=0))


def test_a_mean_of_one_worker_is_that_in_order():
    for vector in (Dense(np.array([-0.0, 3.0])), Sparse(9, np.array([2, 4], np.uint32), np.array([-0.0, 1e-300]))):
        mean, in_order = Averager(vector.dim).mean(Folded(total([vector]), 1)), Averager(vector.dim).mean([vector])
        assert type(mean) is type(in_order)
        assert mean.dense().tobytes() == in_order.dense().tobytes()


def test_messages_that_are_refused_or_not_finite_have_no_sum():
    good = sent([Dense(np.ones(4))] * 40)
    adder, of = TreeAdder(Tree(40), 4), link(4)
    for bad in (Message(REFUSED), *sent([Dense(np.array([1.0, np.nan, 0, 0]))])):
        pieces = adder.added(pieces_of([*good[:3], bad, *good[4:]]), range(25), of)
        assert pieces[range(20)] is None
        assert as_message(pieces[range(20)]).is_refused
        rest = adder.added(pieces_of(good), range(20, 40), of)
        assert adder.total({range(20): as_message(None), **rest}, of) is None
        assert adder.total({**pieces, **rest}, of) is None
    silent = adder.total(pieces_of([SILENT] * 40), of)
    assert silent is not None
    assert silent.elements == 0


def test_a_sum_is_written_in_12_bytes_a_coordinate_or_8_for_each_of_d():
    sparse = PartialSum(7, Sparse(90, np.array([3, 88], np.uint32), np.array([0.1, -2.0])))
    dense = PartialSum(40, Dense(np.arange(5.0)))
    for given_sum, dim, size in ((sparse, 90, 8 + 24), (dense, 5, 8 + 40)):
        message = given_sum.message()
        assert message.data.size == size
        again = PartialSum.read(Message(message.data), dim)
        assert type(again.vector) is type(given_sum.vector)
        assert again.vector.dense().tobytes() == given_sum.vector.dense().tobytes()
        for wrong in (message.data[:-1], message.data[:3]):
            with pytest.raises(CorruptMessage):
                PartialSum.read(Message(wrong.copy()), dim)
    assert PartialSum.read(sparse.message(), 90).held == 7
    for at, index in ((-4, 90), (-4, 0), (-8, 2**32 - 1)):  # beyond d, or not increasing
        data = sparse.message().data.copy()
        data[data.size + at :][:4] = np.array([index], np.uint32).view(np.uint8)
        with pytest.raises(CorruptMessage, match="no increasing ones below 90"):
            PartialSum.read(Message(data), 90)


def test_a_master_that_asks_for_single_messages_is_told_so():
    ups = Folded(Dense(np.ones(3)), 5)
    assert len(ups) == 5
    for ask in (lambda: ups[0], lambda: list(ups), lambda: ups[-1:]):
        with pytest.raises(UserError, match=r'fold = "order"'):
            ask()


@pytest.mark.parametrize(
    ("hosts", "height", "most"), [(1, 0, 1), (2, 3, 2), (8, 9, 8), (9, 9, 4), (40, 4, 8), (64, 6, 8), (300, 2, 74), (1000, 5, 37), (1000, 20, 20)]
)
def test_sums_of_neighbours_meet_at_one_rank_and_the_master_gets_those_of_8_at_most(hosts, height, most):
    above = heads(hosts, height)
    assert all(-1 <= head < p for p, head in enumerate(above))
    assert above.count(-1) <= 8
    assert max(map(above.count, {*above})) == most
    below = [[p] for p in range(hosts)]
    for p in reversed(range(hosts)):
        assert below[p] == list(range(p, p + len(below[p])))
        if above[p] >= 0:
            below[above[p]] = sorted(below[above[p]] + below[p])
    assert last_below(above) == [each[-1] for each in below]
