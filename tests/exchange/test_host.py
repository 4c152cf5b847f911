"""How a rank rests, and that memory is used again only when nobody can see it any more."""

import random

import numpy as np
import pytest

from mpi_compress.exchange import host


@pytest.mark.parametrize(("waited", "nap"), [(0.0, 2e-5), (1e-4, 2e-5), (4e-4, 2e-5), (0.01, 5e-4), (0.04, 2e-3), (60.0, 2e-3)])
def test_a_nap_is_a_twentieth_of_the_time_waited_between_two_limits(waited, nap, monkeypatch):
    naps = []
    monkeypatch.setattr(host.time, "sleep", naps.append)
    host.rest(waited)
    assert naps == [pytest.approx(nap)]


@pytest.mark.parametrize("most", [0, 1, 3])
def test_memory_is_given_again_only_when_no_view_of_it_is_left(most):
    room, draw, held = host.Room(most), random.Random(0), []
    for number in range(400):
        array = room.take(draw.choice([0, 100, host._LARGE, host._LARGE + 1, 3 * host._LARGE]))
        array[:] = number % 251
        held.append((number % 251, draw.choice([array, array[10:50], array.view(np.int8)[::2], memoryview(array)])))
        del array
        for value, view in held:
            assert np.all(np.asarray(view).view(np.uint8) == value)
        while len(held) > draw.randrange(6):
            held.pop(draw.randrange(len(held)))
    assert len(room._kept) == most


def test_memory_that_nobody_sees_is_the_same_again():
    room = host.Room(2)
    first, second = room.take(host._LARGE), room.take(host._LARGE)
    places = {first.ctypes.data, second.ctypes.data}
    del first, second
    again = room.take(host._LARGE)
    assert again.ctypes.data in places
    assert room.take(4 * host._LARGE).ctypes.data not in places  # one much larger is not cut
