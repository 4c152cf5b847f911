"""Gradients of functions whose rows hold few of d coordinates: kept by these, laid out where they are asked for, to the bits of dense additions."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from mpi_compress.kernels.vectors import sum_of_squares, united
from mpi_compress.problem import objective
from mpi_compress.problem.data_terms import data_term
from mpi_compress.problem.few_coordinates import FewValues
from mpi_compress.problem.losses.usual import Logistic
from mpi_compress.problem.objective import Objective, Shards
from mpi_compress.problem.points import Iterate, Point, are_few
from mpi_compress.problem.rows import Rows

DIM = 200


@pytest.fixture(autouse=True)
def _as_if_vectors_were_long(monkeypatch):
    monkeypatch.setattr(objective, "pays", lambda m, dim: False)


def functions(rng: np.random.Generator, n: int, mu: float, weight: float = 0.1) -> Shards:
    """f_i of rows with few nonzeros, some with none."""
    found = []
    for i in range(n):
        a = sp.random_array((3, DIM), density=0.02 * (i % 3), format="csr", rng=rng)
        values = np.full(a.nnz, 0.5) if i % 2 else rng.standard_normal(a.nnz)
        matrix = (a.indptr.astype(np.uint64), a.indices.astype(np.uint32), values)
        found.append(data_term(Rows(matrix, rng.choice([-1.0, 1.0], 3), DIM), Logistic(), weight, mu))
    return Shards(found)


def dense(f: Objective, x: np.ndarray) -> tuple[float, bytes]:
    gradient = np.full(DIM, np.nan)
    return f.term.evaluate(x, gradient, None), gradient.tobytes()


def a_point(rng: np.random.Generator, nonzeros: int) -> np.ndarray:
    x = np.where(rng.random(DIM) < 0.5, -0.0, 0.0)
    x[rng.choice(DIM, nonzeros, replace=False)] = rng.standard_normal(nonzeros)
    return x


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.25]), st.lists(st.integers(0, 4), min_size=1, max_size=6))
def test_any_order_of_sparse_and_dense_points_gives_the_bits_of_dense_additions(seed, mu, order):
    rng = np.random.default_rng(seed)
    fs = functions(rng, 5, mu)
    assert all(f.term.holds_few for f in fs)
    points = [a_point(rng, nonzeros) for nonzeros in (0, 3, DIM // 8, DIM // 8 + 1, DIM)]
    for place in order:
        x = points[place]
        for f in fs:
            assert f.gradient(x).tobytes() == dense(f, x)[1]
        point = Point.at(x)  # one object for all, as in an evaluation
        for some in (fs, fs[:2], fs[3:]):
            values, gradients = some.at(point)
            assert [(value, gradient.tobytes()) for value, gradient in zip(values, gradients, strict=True)] == [dense(f, x) for f in some]
            if (listed := some.listed) is not None:
                for gradient, held in zip(gradients, listed, strict=True):
                    beyond = np.ones(DIM, dtype=bool)
                    beyond[held] = False
                    assert not gradient[beyond].any()
            else:
                assert mu
                assert np.count_nonzero(x) > DIM // 8
        assert fs.gradients(x).tobytes() == b"".join(dense(f, x)[1] for f in fs)
        assert fs[0].gradient(x).tobytes() == dense(fs[0], x)[1], "what was kept is laid out again"


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_not_finite_propagates_as_in_dense_additions(wrong):
    for mu in (0.0, 0.25):
        (_, f), x = functions(np.random.default_rng(1), 2, mu), np.zeros(DIM)
        held = FewValues(f.term).held
        for j in (int(held[0]), int(np.setdiff1d(np.arange(DIM), held)[0])):
            x[:] = 0.0
            x[j] = wrong
            with np.errstate(all="ignore"):
                assert f.gradient(x).tobytes() == dense(f, x)[1]


def test_what_underflows_to_minus_zero_becomes_zero_where_mu_x_is_added():
    x = np.zeros(DIM)
    for mu in (0.0, 0.25):
        for f in functions(np.random.default_rng(2), 3, mu, weight=5e-324):
            assert f.gradient(x).tobytes() == dense(f, x)[1]


def test_a_minibatch_of_one_function_leaves_the_gradients_of_others_alone():
    fs, x = functions(np.random.default_rng(3), 4, 0.25), np.linspace(-1.0, 1.0, DIM)
    g = fs[1].gradient(x)
    before = g.tobytes()
    assert fs[2].gradient(x, np.array([0], dtype=np.uint64)) is not g
    assert g.tobytes() == before


def test_points_are_compared_once_and_an_iterate_that_stands_still_is_copied_once(monkeypatch):
    from mpi_compress.problem import points

    calls = []
    monkeypatch.setattr(points, "are_equal", lambda a, b: calls.append(1) or bool(np.array_equal(a, b)))
    x, iterate = np.arange(3.0), Iterate()
    kept = Point.at(x)
    with iterate.fixed(x):
        there = iterate.point(x)
        assert iterate.point(x) is there
        assert iterate.point(x.copy()) is not there
        assert kept.equals(there)
        assert kept.equals(there)
        assert len(calls) == 1
        assert there.x is not x
    assert iterate.point(x).x is x, "nothing says that it stands still any longer"
    x[0] = 5.0
    assert not kept.equals(iterate.point(x))
    assert there.x[0] == kept.x[0] == 0.0
    assert not Point(np.array([np.nan])).equals(Point(np.array([np.nan])))


def test_an_iterate_that_moved_between_rounds_is_looked_at_again():
    fs, x = functions(np.random.default_rng(4), 1, 0.25), np.zeros(DIM)
    f = fs[0]
    for k in range(3):
        x[k] = 1.0
        with fs.iterate.fixed(x):
            assert f.gradient(x).tobytes() == f.gradient(x).tobytes() == dense(f, x)[1]


def test_few_are_an_eighth_of_all():
    assert are_few(25, 200)
    assert not are_few(26, 200)
    assert Point(np.zeros(8)).nonzeros.size == 0
    assert Point(np.array([0, 0, 0, 0, -0.0, 0, 0, np.nan])).nonzeros.tolist() == [7]
    assert Point(np.array([0, 0, 0, 0, 1.0, 0, 0, 1.0])).nonzeros is None


@given(st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40)))
def test_the_union_of_increasing_indices(a, b):
    arrays = [np.array(sorted(s), dtype=np.uint32) for s in (a, b)]
    np.testing.assert_array_equal(united(*arrays), np.union1d(*arrays))
    assert united(*arrays).dtype == np.uint32


def test_squares_are_added_one_after_another():
    v, total = np.random.default_rng(0).standard_normal(1000), 0.0
    for a in v.tolist():
        total += a * a
    assert sum_of_squares(v) == total
