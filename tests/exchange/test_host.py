"""How ranks rest, and sleep until they are rung; and that memory is used again only when nobody can see it any more."""

import os
import random
import subprocess
import sys
from pathlib import Path

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
    buffers, draw, held = host.Buffers(most), random.Random(0), []
    for number in range(400):
        array = buffers.take(draw.choice([0, 100, host._LARGE, host._LARGE + 1, 3 * host._LARGE]))
        array[:] = number % 251
        held.append((number % 251, draw.choice([array, array[10:50], array.view(np.int8)[::2], memoryview(array)])))
        del array
        for value, view in held:
            assert np.all(np.asarray(view).view(np.uint8) == value)
        while len(held) > draw.randrange(6):
            held.pop(draw.randrange(len(held)))
    assert len(buffers._kept) == most


def test_memory_that_nobody_sees_is_the_same_again():
    buffers = host.Buffers(2)
    first, second = buffers.take(host._LARGE), buffers.take(host._LARGE)
    places = {first.ctypes.data, second.ctypes.data}
    del first, second
    again = buffers.take(host._LARGE)
    assert again.ctypes.data in places
    assert buffers.take(4 * host._LARGE).ctypes.data not in places  # one much larger is not cut


LATENCY = """
import time
import numpy as np
from mpi4py import MPI
from mpi_compress.exchange.channel import Channel
comm, took = MPI.COMM_WORLD, []
channel, other = Channel(comm), 1 - comm.rank
if not channel.futexes.reaches(other):
    print("no futexes")
    raise SystemExit
looks = []
wait = channel.futexes.wait
channel.futexes.wait = lambda value, seconds: (looks.append(seconds), wait(value, seconds))
for size in (10, 400_000):
    for _ in range(5):
        if comm.rank == 0:
            time.sleep(0.3)
            channel.send(np.zeros(size, np.uint8), [other], 5)
        else:
            looks.clear()
            assert channel.receive(other, 5).size == size
            took.append(len(looks))
print(*took)
"""


def test_a_rank_that_waits_sleeps_until_it_is_woken():
    """Within 0.3 s it looks some 15 times, where naps of at most 2 ms are more than 150 (the median: a rank may come late)."""
    line = [str(Path(sys.executable).parent / "mpiexec"), "-n", "2", sys.executable, "-c", LATENCY]
    found = subprocess.run(line, env={**os.environ, "MPI_COMPRESS_CROWDED": "1"}, capture_output=True, text=True, timeout=60)
    if "no futexes" in found.stdout:
        pytest.skip("no futex, or another MPI than MPICH")
    looks = [int(word) for word in found.stdout.split()]
    assert len(looks) == 10, found.stderr
    assert 1 <= sorted(looks)[5] < 60


BOUND = """
import os
cores = sorted(os.sched_getaffinity(0))
from mpi4py import MPI
comm = MPI.COMM_WORLD
os.sched_setaffinity(0, {cores[comm.rank % len(cores)] if SPREAD else cores[0]})
from mpi_compress.exchange.futexes import Futexes
os.write(1, f"{Futexes(comm).crowded}\\n".encode())
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2, reason="ranks cannot be bound to two cores")
@pytest.mark.parametrize("spread", [True, False])
def test_ranks_are_crowded_where_they_are_more_than_the_cores_that_they_are_bound_to(spread):
    line = [str(Path(sys.executable).parent / "mpiexec"), "-n", "2", sys.executable, "-c", f"SPREAD = {spread}\n{BOUND}"]
    environment = {name: value for name, value in os.environ.items() if name != "MPI_COMPRESS_CROWDED"}
    found = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=60)
    assert found.stdout.split() == [str(not spread)] * 2, found.stderr
