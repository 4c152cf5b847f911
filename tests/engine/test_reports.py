"""Workers' reports: the largest of some numbers and the sums of the others, in worker order."""

import numpy as np
import pytest

from mpi_compress.engine.evaluation import Tally


@pytest.mark.parametrize("workers", [1, 7])
def test_the_largest_and_the_sums_in_worker_order(workers):
    reports = np.random.default_rng(0).normal(size=(workers, 10))
    tally = Tally(largest=3, kept=2)
    for report in reports:
        tally.add(report)
    np.testing.assert_array_equal(tally.folded[:3], reports[:, :3].max(axis=0))
    total = reports[0, 3:]
    for report in reports[1:]:
        total = total + report[3:]
    assert tally.folded[3:].tobytes() == total.tobytes()
    np.testing.assert_array_equal(tally.kept, reports[:, 3:5])
