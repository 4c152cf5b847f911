"""Workers' reports: named fields in one vector, the largest of some and the sums of the others in worker order."""

import numpy as np
import pytest

from mpi_compress.engine.evaluation import Layout, Tally


def layout():
    return Layout(largest={"seconds": 1, "peaks": 2}, added={"logs": 2, "value": 1, "vector": None})


@pytest.mark.parametrize("vector", [(), np.array([5.0, 6.0, 7.0])])
def test_fields_are_found_by_their_names(vector):
    fields = {"seconds": 1.5, "peaks": np.array([2.0, -3.0]), "logs": (4, 5.5), "value": 6, "vector": vector}
    report = layout().pack(**fields)
    assert report.size == 6 + len(vector)
    for name, given in fields.items():
        np.testing.assert_array_equal(layout().field(name, report), np.atleast_1d(given))


def test_a_field_of_another_length_is_refused():
    with pytest.raises(ValueError, match="broadcast"):
        layout().pack(seconds=1.5, peaks=(1, 2, 3), logs=(4, 5), value=6, vector=())


def test_the_largest_and_the_sums_in_worker_order():
    rng = np.random.default_rng(0)
    workers = [
        {"seconds": rng.normal(), "peaks": rng.normal(size=2), "logs": rng.normal(size=2), "value": rng.normal(), "vector": rng.normal(size=4)}
        for _ in range(7)
    ]  # fmt: skip
    tally = Tally(layout(), "logs")
    for fields in workers:
        tally.add(layout().pack(**fields))
    for name in ("seconds", "peaks"):
        np.testing.assert_array_equal(tally[name], np.max([np.atleast_1d(w[name]) for w in workers], axis=0))
    for name in ("logs", "value", "vector"):
        total = np.atleast_1d(workers[0][name]).copy()
        for w in workers[1:]:
            total = total + w[name]
        assert tally[name].tobytes() == total.tobytes()
    np.testing.assert_array_equal(tally.kept, [w["logs"] for w in workers])
