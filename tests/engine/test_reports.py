"""Workers' reports: the largest of some numbers, and the sums of the others and of gradients, in worker order."""

import numpy as np
import pytest

from mpi_compress.engine.evaluation import Tally, report
from mpi_compress.exchange.host import Room
from mpi_compress.exchange.mpi import _packed, _unpacked

DIM = 6


@pytest.mark.parametrize("workers", [1, 7])
@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("length", [0, 4])
def test_the_largest_and_the_sums_in_worker_order(workers, joined, length):
    rng = np.random.default_rng(0)
    numbers, gradients, vectors = (rng.normal(size=(workers, size)) for size in (8, DIM, length))
    gradients[::2, 1::3] = 0.0
    listed = [np.array([0, 2, 3, 5], dtype=np.uint32) if i % 2 == 0 else None for i in range(workers)]
    reports = [report(*of) for of in zip(numbers, gradients, listed, vectors if length else [None] * workers, strict=True)]
    tally = Tally(DIM, numbers=8, largest=3, kept=2)
    for each in [array for message in _packed(reports, Room(2)) for array in _unpacked(message)] if joined else reports:
        tally.add(each)
    np.testing.assert_array_equal(tally.numbers[:3], numbers[:, :3].max(axis=0))
    np.testing.assert_array_equal(tally.kept, numbers[:, 3:5])
    for found, of in ((tally.numbers[3:], numbers[:, 3:]), (tally.gradient, gradients), (tally.vector, vectors)):
        total = of[0].copy()
        for each in of[1:]:
            total += each
        assert found.tobytes() == total.tobytes()


def test_short_reports_share_a_message_and_long_ones_do_not():
    assert [m.size for m in _packed([np.zeros(3)] * 2, Room(2))] == [8]
    assert [m.size for m in _packed([np.zeros(40_000), [np.zeros(1), np.zeros(39_999)], np.zeros(2)], Room(2))] == [40_001, 40_001, 3]


def test_a_report_may_use_the_memory_of_the_one_before():
    """As gradients do that are laid out in one room."""
    room = np.empty(DIM)

    def reports():
        for i in range(5):
            room[:] = i
            yield report(np.full(8, i), room, None, None)

    arrived = [array for message in _packed(reports(), Room(2)) for array in _unpacked(message)]
    assert [array[-1] for array in arrived] == [0, 1, 2, 3, 4]
