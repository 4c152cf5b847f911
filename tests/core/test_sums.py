"""Sums of floats are left folds, whatever the version of Python."""

import math

from mpi_compress.core.sums import added


def test_a_sum_is_the_left_fold_where_a_compensated_one_differs():
    assert added([0.1] * 10) == 0.9999999999999999 != math.fsum([0.1] * 10)
    assert added([1.0, 1e100, 1.0, -1e100]) == 0.0 != math.fsum([1.0, 1e100, 1.0, -1e100])


def test_it_begins_at_the_start_and_keeps_whole_numbers_whole():
    assert added([-1.0, 2.0**-54], start=1.0) == 2.0**-54 != 1.0 + added([-1.0, 2.0**-54])
    assert repr(added([])) == "0"
    assert repr(added(iter([3, 4]), start=5)) == "12"
