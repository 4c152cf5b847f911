"""What `show` says of who has which rows, by hand."""

from pathlib import Path

import numpy as np
import pytest

import mpi_compress as mc
from mpi_compress.results.summary import partition_of, split


def run(partition="", **arrays):
    attrs = {"label": "a", "status": "complete", "job": f"workers = {{ {partition} }}" if partition else ""}
    return mc.Run(Path("a.h5"), attrs, {}, {}, {}, None, split={name: np.array(values) for name, values in arrays.items()})


@pytest.mark.parametrize(("partition", "name"), [
    ("", "contiguous"), ('partition = "shuffled"', "shuffled"),
    ('partition = { name = "dirichlet", alpha = 0.3 }', "dirichlet, alpha = 0.3"),
    (f'partition = {{ name = "contiguous", sizes = {[1] * 8} }}', f"contiguous, sizes = {[1] * 8}"),
    (f'partition = {{ name = "contiguous", sizes = {[1] * 9} }}', "contiguous, sizes = 9 shares"),
])  # fmt: skip
def test_a_partition_is_named_as_the_job_has_it(partition, name):
    assert partition_of(run(partition)) == name


def lines(rows, labels=(), counts=()):
    return [" ".join(line.split()) for line in split(run(rows=rows, labels=labels, counts=counts or np.empty((len(rows), 0))))]


def test_the_first_eight_workers_are_shown():
    eight = lines(range(10, 18))
    assert "contiguous: 10 to 17" in eight[0]
    assert eight[1] == "worker samples"
    assert eight[2:] == [f"{i} {10 + i}" for i in range(8)]
    nine = lines(range(10, 19))
    assert nine[2:10] == [f"{i} {10 + i}" for i in range(8)]
    assert nine[10:] == ["… and 1 workers more, of 18 samples"]


def test_ten_labels_have_a_column_each_and_of_eleven_the_last_is_among_the_others():
    ten = lines([55, 55], range(10), [list(range(10)), list(range(10))])
    assert ten[1] == "worker samples 0 1 2 3 4 5 6 7 8 9"
    assert ten[2] == "0 55 0 1 2 3 4 5 6 7 8 9"
    eleven = lines([65, 65], range(11), [list(range(11)), list(range(11))])
    assert eleven[1] == "worker samples 0 1 2 3 4 5 6 7 8 9 others"
    assert eleven[2] == "0 65 0 1 2 3 4 5 6 7 8 9 10"


def test_nothing_is_said_of_one_worker_or_of_a_result_that_does_not_know():
    assert lines([5]) == []
    assert [*split(run())] == []
