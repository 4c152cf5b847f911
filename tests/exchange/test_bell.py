"""Ranks that share cores sleep until they are rung."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LATENCY = """
import time
import numpy as np
from mpi4py import MPI
from mpi_compress.exchange.channel import Channel
comm, took = MPI.COMM_WORLD, []
channel, other = Channel(comm), 1 - comm.rank
if not channel.bell.reaches(other):
    print("no bell")
    raise SystemExit
looks = []
sleep = channel.bell.sleep
channel.bell.sleep = lambda heard, seconds: (looks.append(seconds), sleep(heard, seconds))
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


def test_a_rank_that_waits_sleeps_until_it_is_rung():
    """Within 0.3 s it looks some 15 times, where naps of at most 2 ms are more than 150 (the median: a rank may come late)."""
    line = [str(Path(sys.executable).parent / "mpiexec"), "-n", "2", sys.executable, "-c", LATENCY]
    found = subprocess.run(line, env={**os.environ, "MPI_COMPRESS_CROWDED": "1"}, capture_output=True, text=True, timeout=60)
    if "no bell" in found.stdout:
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
from mpi_compress.exchange.bell import Bell
os.write(1, f"{Bell(comm).crowded}\\n".encode())
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2, reason="ranks cannot be bound to two cores")
@pytest.mark.parametrize("spread", [True, False])
def test_ranks_are_crowded_where_they_are_more_than_the_cores_that_they_are_bound_to(spread):
    line = [str(Path(sys.executable).parent / "mpiexec"), "-n", "2", sys.executable, "-c", f"SPREAD = {spread}\n{BOUND}"]
    environment = {name: value for name, value in os.environ.items() if name != "MPI_COMPRESS_CROWDED"}
    found = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=60)
    assert found.stdout.split() == [str(not spread)] * 2, found.stderr
