"""Reports of workers: the largest of some numbers, and the sums of the others and of gradients, in worker order."""

import itertools

import numpy as np
import pytest

from mpi_compress.engine.evaluation import Tally, in_order, report
from mpi_compress.exchange.host import Buffers
from mpi_compress.exchange.mpi import _joined, _parted

DIM = 6


@pytest.mark.parametrize("cuts", [[0, 1], [0, 7], [0, 1, 4, 7]])
@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("length", [0, 4])
def test_the_largest_and_the_sums_in_worker_order(cuts, joined, length):
    rng, workers = np.random.default_rng(0), cuts[-1]
    largest, numbers, gradients, vectors = (rng.normal(size=(workers, size)) for size in (3, 5, DIM, length))
    gradients[::2, 1::3] = 0.0
    tally = Tally(DIM)
    for a, b in itertools.pairwise(cuts):
        held = [np.array([0, 2, 3, 5] if i % 2 == 0 else range(DIM), dtype=np.uint32) for i in range(a, b)]
        some = report(largest[a:b].max(axis=0).tolist(), numbers[a:b], vectors[a:b], gradients[a:b], held if a else None)
        tally.add(_parted(_joined(some, Buffers(2))) if joined else some)
    np.testing.assert_array_equal(tally.largest, largest.max(axis=0))
    np.testing.assert_array_equal(np.concatenate(tally.numbers), numbers)
    for found, of in ((in_order(numbers), numbers), (tally.gradient, gradients), (tally.vector, vectors)):
        total = of[0].copy()
        for each in of[1:]:
            total += each
        assert found.tobytes() == total.tobytes()
