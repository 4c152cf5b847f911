"""A kernel that users' objects reach compares the lengths of its arrays before it writes."""

import numpy as np
import pytest
from helpers.objectives import problem

import mpi_compress as mc
from mpi_compress.kernels import sets, vectors

TWO, THREE = np.arange(2, dtype=np.uint32), np.arange(3, dtype=np.uint32)
FAR = np.array([1_000_000], dtype=np.uint32)
ONE_ROW, TO = np.array([3]), np.zeros(1, dtype=np.int64)
OUT = np.zeros((1, 9))
NO_SIGNS = np.empty(0, np.uint32), np.empty(0, np.bool_), np.empty(0), np.empty(0, np.int64)
UNEQUAL = {
    "scatter_add": lambda: vectors.scatter_add(THREE, np.ones(2), ONE_ROW, 1.0, TO, OUT),
    "scatter_add, far": lambda: vectors.scatter_add(FAR, np.ones(1), np.array([1]), 1.0, TO, OUT),
    "scatter_add, no such row": lambda: vectors.scatter_add(THREE, np.ones(3), ONE_ROW, 1.0, TO + 1, OUT),
    "scatter_add_noting": lambda: vectors.scatter_add_noting(FAR, np.ones(1), np.zeros(9), np.zeros(9, dtype=np.bool_)),
    "signs_add": lambda: vectors.signs_add(FAR, np.ones(1, dtype=np.bool_), np.array([1]), np.ones(1), TO, OUT),
    "levels_add": lambda: vectors.levels_add(np.ones((1, 9), dtype=np.int64), np.ones((1, 1)), 4, 1.0, TO, OUT),
    "merge": lambda: vectors.merge(THREE, np.ones(2), ONE_ROW, TWO, np.ones(2, dtype=np.bool_), np.ones(1), np.array([2])),
    "put_messages": lambda: sets.put_messages(
        sets.FIXED, 4, 64, THREE, np.ones(2), ONE_ROW, *NO_SIGNS, np.zeros(64, dtype=np.uint8), np.zeros(1, dtype=np.int64)
    ),
}


@pytest.mark.parametrize("name", UNEQUAL)
def test_arrays_that_do_not_fit_are_refused(name):
    with pytest.raises(ValueError, match=r"length|beyond|not there"):
        UNEQUAL[name]()


def test_vectors_of_different_lengths_are_not_equal():
    assert not vectors.are_equal(np.zeros(3), np.zeros(4))


@pytest.mark.parametrize("ask", ["value_and_gradient", "gradient"])
@pytest.mark.parametrize("size", [3, 5000])
def test_a_function_refuses_a_point_of_another_length(ask, size):
    f, _ = problem("logistic", sparse=True)
    getattr(f, ask)(np.zeros(7))
    with pytest.raises(mc.UserError, match=f"a vector of {size} coordinates was given to a function of 7"):
        getattr(f, ask)(np.zeros(size))
