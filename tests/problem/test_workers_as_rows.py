"""Values and gradients of all workers of a process as rows are those of each alone, to the last bit."""

import itertools

import numpy as np
import pytest
from helpers.objectives import problem

from mpi_compress.problem.data_terms import data_term, joined
from mpi_compress.problem.losses import losses
from mpi_compress.problem.objective import Objective, Shards
from mpi_compress.problem.penalties import penalties
from mpi_compress.problem.points import Point
from mpi_compress.problem.rows import Rows
from mpi_compress.problem.scaled_vector import ScaledVector

CUTS = [4, 5, 12, 12 + 8, 40]
EACH_LOSS = pytest.mark.parametrize("name", losses)
SPARSE = pytest.mark.parametrize("sparse", [True, False])


def shards(rows: list[Rows], name="logistic", mu=0.3, **more) -> Shards:
    return Shards([data_term(each, losses[name](), 1 / 40, mu) for each in rows], **more)


def pieces(name="logistic", sparse=True, dtype=np.float64, cuts=tuple(CUTS)) -> list[Rows]:
    """Rows that lie one after another in one matrix."""
    whole = problem(name, sparse, dtype)[0].rows
    return [whole.cut(a, b) for a, b in itertools.pairwise(cuts)]


def alone(rows: list[Rows], name="logistic", penalty=None) -> list[Objective]:
    """The functions of these rows, each with memory of its own."""
    copies = [each.take(np.arange(len(each), dtype=np.uint64)) for each in rows]
    return [Objective(each, losses[name](), 1 / 40, 0.3, penalty) for each in copies]


@EACH_LOSS
@SPARSE
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("careful", [False, True])
def test_gradients_and_values_are_those_of_each_worker_to_the_last_bit(careful, name, sparse, dtype):
    rows = pieces(name, sparse, dtype)
    fs, each = shards(rows, name, careful=careful), alone(rows, name)
    assert (joined(fs.terms) is None) == (losses[name].kernel is None)
    for x in np.random.default_rng(2).standard_normal((3, 7)):
        assert fs.gradients(x).tobytes() == np.array([f.gradient(x) for f in each]).tobytes()
        assert fs.at(Point.at(x))[0].tolist() == [f.value_and_gradient(x)[0] for f in each]
        assert fs.at(Point.at(x))[1].tobytes() == np.array([f.value_and_gradient(x)[1] for f in each]).tobytes()
        for f, g in zip(fs, each, strict=True):
            assert f.gradient(x).tobytes() == g.gradient(x).tobytes()
            assert f.value_and_gradient(x)[0] == g.value_and_gradient(x)[0]
    assert fs.samples.tolist() == [f.shard.samples[0] for f in fs] == [f.shard.samples[0] for f in each] == [6, 42, 48, 120]
    assert (fs.seconds > 0).all()


@EACH_LOSS
@SPARSE
def test_each_worker_may_be_asked_at_a_point_of_its_own(name, sparse):
    rows, penalty = pieces(name, sparse), penalties["ratio"](weight=0.7)
    xs = np.random.default_rng(3).standard_normal((4, 7))
    for r in (None, penalty):
        wanted = np.array([f.gradient(x) for f, x in zip(alone(rows, name, r), xs, strict=True)])
        assert shards(rows, name, penalty=r).gradients(xs).tobytes() == wanted.tobytes()
        assert shards(rows, name, penalty=r, careful=True).gradients(xs).tobytes() == wanted.tobytes()


@EACH_LOSS
@SPARSE
@pytest.mark.parametrize("mu", [0.0, 0.3])
@pytest.mark.parametrize("apart", [False, True])
def test_gradients_of_minibatches_are_those_of_each_worker(name, sparse, mu, apart):
    rng, rows = np.random.default_rng(4), pieces(name, sparse)
    fs = shards([each.take(np.arange(len(each), dtype=np.uint64)) for each in rows] if apart else rows, name, mu)
    for B in (1, 3):
        drawn = np.array([rng.integers(len(each), size=B) for each in rows]).astype(np.uint64)
        ragged = [some[: 1 + i % B] for i, some in enumerate(drawn)]
        x, xs = rng.standard_normal(7), rng.standard_normal((4, 7))
        for asked, minibatches in itertools.product((x, xs, ScaledVector(x, 0.5)), (drawn, ragged)):
            points = asked if asked is xs else [asked] * 4
            each = [Objective(f.rows, f.loss, f.weight, f.mu) for f in fs]
            wanted = [f.gradient(x_i, some).copy() for f, x_i, some in zip(each, points, minibatches, strict=True)]
            before = fs.samples.copy()
            assert fs.gradients(asked, minibatches).tobytes() == np.array(wanted).tobytes()
            assert (fs.samples - before).tolist() == [some.size for some in minibatches]


def test_some_of_the_workers_have_the_memory_of_all():
    fs, x = shards(pieces()), np.arange(7.0)
    some, wanted = fs[1:3], fs.gradients(x)[1:3].tobytes()
    assert some.gradients(x).tobytes() == wanted
    assert fs.samples.tolist() == [1, 14, 16, 20]
    assert fs[0:4] is fs
    assert [len(block) for _, block in fs.blocks()] == [4]
    fs.at(Point.at(x))
    some.gradients(x)
    assert fs.borrowed.tolist() == [0.0, *fs.took[1:3].tolist(), 0.0]
    assert some[1].shard.samples[0] == fs[2].shard.samples[0] == 24


def test_an_evaluation_is_kept_for_each_worker_until_it_asks_elsewhere():
    fs, x = shards(pieces()), np.arange(7.0)
    fs.at(Point.at(x))
    fs[1].gradient(x + 1.0)
    for f in fs:
        f.gradient(x.copy())
    assert (fs.borrowed > 0).tolist() == [True, False, True, True]


def test_workers_whose_vectors_are_long_are_evaluated_in_blocks():
    long = Rows((np.ones((5, 2**16)),), np.ones(5), 2**16)
    fs = shards([long.cut(i, i + 1) for i in range(5)])
    assert [(places, len(block)) for places, block in fs.blocks()] == [(slice(0, 2), 2), (slice(2, 4), 2), (slice(4, 6), 1)]
    assert [*shards([]).blocks()] == []


def test_a_point_that_an_algorithm_of_ones_own_moves_or_gives_in_another_type_is_looked_at_anew():
    fs = shards(pieces(cuts=(0, 20, 40)), careful=True)
    (f, g), x = fs, np.arange(7.0)
    f.gradient(x)
    x += 1
    assert g.gradient(x).tobytes() == Objective(g.rows, g.loss, 1 / 40, 0.3).gradient(x).tobytes()
    short = x.astype(np.float32)
    assert g.gradient(short).tobytes() == g.gradient(short.astype(np.float64)).tobytes()
    assert not np.shares_memory(fs.gradients(x), fs.gradients(x))


def test_one_call_is_for_shards_that_lie_one_after_another():
    whole = problem("logistic", True)[0].rows
    first, second, third = (whole.cut(a, a + 10) for a in (0, 10, 20))
    other = problem("logistic", True)[0].rows.cut(10, 20)

    def together(*rows: Rows) -> bool:
        return joined(shards([*rows]).terms) is not None

    assert together(first, second, third)
    assert together(second, third)
    assert not any(together(*rows) for rows in ([first, third], [second, first], [first, other], [whole, whole]))
    unequal = [data_term(rows, losses["logistic"](), weight, 0.0) for rows, weight in ((first, 0.1), (second, 0.2))]
    assert joined(unequal) is None


def test_gradients_hold_a_smooth_penalty():
    rows, penalty, x = pieces(cuts=(0, 20, 40)), penalties["ratio"](weight=0.7), np.arange(7.0)
    fs, each = shards(rows, penalty=penalty), alone(rows, penalty=penalty)
    assert fs.gradients(x).tobytes() == np.array([f.elsewhere(x)[1] for f in each]).tobytes()
    assert fs.at(Point.at(x))[0].tolist() == [f.elsewhere(x)[0] for f in each]
