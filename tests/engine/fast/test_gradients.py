"""Gradients of all workers of a process by one kernel call are those of each, to the last bit."""

import itertools

import numpy as np
import pytest
from helpers.objectives import problem

from mpi_compress.engine.fast.ways import GradientsTogether
from mpi_compress.problem.losses import losses
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.penalties import penalties
from mpi_compress.problem.rows import Rows


@pytest.mark.parametrize("name", losses)
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("careful", [False, True])
def test_gradients_of_many_workers_by_one_call_are_their_own_to_the_last_bit(careful, name, sparse, dtype):
    whole = problem(name, sparse, dtype)[0].rows
    cuts = [4, 5, 12, 12 + 8, 40]

    def workers() -> list[Objective]:
        return [Objective(whole.cut(a, b), losses[name](), 1 / 40, 0.3, careful=careful) for a, b in itertools.pairwise(cuts)]

    together, alone = workers(), workers()
    assert (GradientsTogether.of(together) is None) == (losses[name].kernel is None)
    for x in np.random.default_rng(2).standard_normal((3, 7)):
        for f, g in zip(together, alone, strict=True):
            assert f.gradient(x).tobytes() == g.gradient(x).tobytes()
            assert f.value_and_gradient(x)[0] == g.value_and_gradient(x)[0]
    assert [f.samples for f in together] == [g.samples for g in alone] == [3, 21, 24, 60]
    assert all(f.seconds > 0 and f.borrowed == 0 for f in together)
    together[0].value_and_gradient(x + 1)  # an evaluation, before the round that asks for the gradient there
    together[0].gradient(x + 1)
    assert together[0].borrowed > 0


def test_the_gradients_of_all_as_one_array_are_those_that_each_would_return():
    whole = problem("logistic", True)[0].rows
    fs = [Objective(whole.cut(a, a + 20), losses["logistic"](), 1 / 20, 0.3) for a in (0, 20)]
    together = GradientsTogether.of(fs)
    assert together is not None
    x = np.arange(7.0)
    alone = [Objective(f.rows, f.loss, 1 / 20, 0.3).gradient(x) for f in fs]
    assert together.gradients(x).tobytes() == np.array(alone).tobytes()
    for f in fs:
        f.value_and_gradient(x)
    assert together.gradients(x).tobytes() == np.array(alone).tobytes()
    assert [f.samples for f in fs] == [40, 40]


def test_workers_that_ask_at_points_of_their_own_are_computed_one_by_one():
    whole = problem("logistic", True)[0].rows
    fs = [Objective(whole.cut(a, a + 20), losses["logistic"](), 1 / 20, 0.3) for a in (0, 20)]
    assert GradientsTogether.of(fs) is not None
    for k in range(3):
        for f, x in zip(fs, np.random.default_rng(k).standard_normal((2, 7)), strict=True):
            assert f.gradient(x).tobytes() == Objective(f.rows, f.loss, 1 / 20, 0.3).gradient(x).tobytes()
    assert [f.neighbours for f in fs] == [None, None]


def test_a_point_that_an_algorithm_of_ones_own_moves_or_gives_in_another_type_is_looked_at_anew():
    whole = problem("logistic", True)[0].rows
    f, g = (Objective(whole.cut(a, a + 20), losses["logistic"](), 1 / 20, 0.3, careful=True) for a in (0, 20))
    assert GradientsTogether.of([f, g]) is not None
    x = np.arange(7.0)
    f.gradient(x)
    x += 1
    assert g.gradient(x).tobytes() == Objective(g.rows, g.loss, 1 / 20, 0.3).gradient(x).tobytes()
    short = x.astype(np.float32)
    f.gradient(short)
    assert g.gradient(short).tobytes() == g.gradient(short.astype(np.float64)).tobytes()


def test_gradients_are_computed_by_one_call_only_where_shards_are_neighbours_and_small():
    whole = problem("logistic", True)[0].rows
    pieces = [whole.cut(a, a + 10) for a in (0, 10, 20)]
    other = problem("logistic", True)[0].rows.cut(10, 20)
    wide = Rows((np.zeros((4, 2**16)),), np.ones(4), 2**16)

    def together(*rows: Rows) -> bool:
        return GradientsTogether.of([Objective(r, losses["logistic"](), 0.1, 0.0) for r in rows]) is not None

    neighbours = [pieces, pieces[1:], [wide.cut(0, 2), wide.cut(2, 4)]]
    assert all(together(*rows) for rows in neighbours)
    apart = [[pieces[0], pieces[2]], [pieces[1], pieces[0]], [pieces[0], other], [whole, whole]]
    lone_or_large = [[], [pieces[0]], [wide.cut(i, i + 1) for i in range(3)]]
    assert not any(together(*rows) for rows in apart + lone_or_large)


def test_gradients_by_one_call_hold_a_smooth_penalty():
    whole = problem("logistic", True)[0].rows

    def workers() -> list[Objective]:
        penalty = penalties["ratio"](weight=0.7)
        return [Objective(whole.cut(a, a + 20), losses["logistic"](), 1 / 20, 0.3, penalty) for a in (0, 20)]

    together, alone, x = workers(), workers(), np.arange(7.0)
    assert GradientsTogether.of(together) is not None
    for f, g in zip(together, alone, strict=True):
        assert f.gradient(x).tobytes() == g.gradient(x).tobytes()
        assert f.value_and_gradient(x)[0] == g.value_and_gradient(x)[0]
