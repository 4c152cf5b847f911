"""x = scale · v is x: shrunk, added to and read as a vector would be, whatever the scale has come to."""

import numpy as np
import pytest

from mpi_compress.algorithms import parts
from mpi_compress.messages.kinds import Sparse
from mpi_compress.problem.scaled_vector import ScaledVector


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("factor", [1.0, 0.5, 1e-3, 2e-3, -1.0, 0.0, 1e-9])
def test_it_is_shrunk_and_added_to_as_a_vector_is(factor, at_once):
    x, held = np.array([1.0, -2.0, 4.0]), ScaledVector(np.array([1.0, -2.0, 4.0]))
    few = Sparse(3, np.array([1], dtype=np.uint32), np.array([8.0]))
    for _ in range(3):
        held.shrink(factor, at_once)
        x = factor * x
        np.testing.assert_allclose(held.dense(), x, rtol=1e-12)
        held.add(np.ones(3), -0.5)
        held.add(few, 0.25)
        x = x - 0.5 + 0.25 * few.dense()
        np.testing.assert_allclose(held.dense(), x, rtol=1e-12)


def test_a_step_costs_no_pass_over_the_vector_until_the_scale_is_small():
    held = ScaledVector(np.ones(2))
    held.shrink(0.5)
    assert (held.scale, held.v.tolist()) == (0.5, [1, 1])
    held.shrink(0.5, at_once=True)
    assert (held.scale, held.v.tolist()) == (0.5, [0.5, 0.5])
    held.shrink(1.5e-3)
    assert (held.scale, held.dense().tolist()) == (1.0, [3.75e-4, 3.75e-4]), "0.5 · 1.5e-3 is below 1e-3"
    assert held.dense() is held.v


@pytest.mark.parametrize("make", [ScaledVector, np.copy])
def test_a_point_is_added_to_assigned_and_read_whatever_holds_it(make):
    point = make(np.ones(3))
    if isinstance(point, ScaledVector):
        point.shrink(0.5)
    else:
        point *= 0.5
    parts.add(point, np.array([1.0, 2.0, 3.0]), 0.5)
    assert parts.dense(point).tolist() == [1.0, 1.5, 2.0]
    parts.add(point, Sparse(3, np.array([2], dtype=np.uint32), np.array([4.0])))
    assert parts.dense(point).tolist() == [1.0, 1.5, 6.0]
    parts.assign(point, np.array([7.0, 8.0, 9.0]))
    assert parts.dense(point).tolist() == [7.0, 8.0, 9.0]
