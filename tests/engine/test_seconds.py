"""The seconds of a run have a round whole, whatever rank 0 does off the clock in between."""

from itertools import pairwise

import pytest
from helpers.running import command

import mpi_compress as mc

HEARING = 0.03  # seconds in which a worker's rank takes an answer over
LATE = f"""
import time
from mpi4py import MPI
import mpi_compress as mc

@mc.algorithms.register("late")
class Late(mc.algorithms["gd"]):
    \"\"\"Gradient descent over a slow link: the answer takes long to the ranks of workers, and rank 0 does not see it.\"\"\"

    def all_hear(self, node, answer, t):
        if MPI.COMM_WORLD.rank > 0:
            time.sleep({HEARING})
        return super().all_hear(node, answer, t)
"""
JOB = """
plugins = ["late"]
data = { generator = "gspar", samples = 40, dim = 6 }
workers.count = 2
algorithm.name = "late"
stop = { rounds = 10, seconds = 60 }
"""


@pytest.mark.parametrize(("every", "checkpoint"), [
    (1, '"1 h"'), *(pytest.param(10, saved, marks=pytest.mark.slow) for saved in ('"1 h"', "1")),
])  # fmt: skip
def test_an_answer_that_is_under_way_is_on_the_clock(every, checkpoint, tmp_path):
    """Rank 0 has sent it, and evaluates (every round, or at the end alone), saves or counts; the workers hear it meanwhile."""
    (tmp_path / "late.py").write_text(LATE)
    (tmp_path / "job.toml").write_text(f'{JOB}log.every = {every}\ncheckpoint.every = {checkpoint}\n')
    done = command("run", tmp_path / "job.toml", "--out", tmp_path, "--quiet", ranks=3)
    assert done.returncode == 0, done.stderr
    (run,) = (mc.read(file) for file in tmp_path.rglob("*.h5"))
    seconds = run.timing["seconds"]
    assert 10 * HEARING < seconds[-1] < 10 * HEARING + 2
    assert all(before <= after for before, after in pairwise(seconds))


@pytest.mark.slow
def test_it_goes_on_from_there(tmp_path):
    (tmp_path / "late.py").write_text(LATE)
    (tmp_path / "job.toml").write_text(JOB.replace("rounds = 10", "rounds = 200") + "log.every = 1\n")
    first = command("run", tmp_path / "job.toml", "--out", tmp_path, "--quiet", "--time-limit", "3", ranks=3)
    assert first.returncode == 75, first.stderr
    second = command("run", tmp_path / "job.toml", "--out", tmp_path, "--quiet", ranks=2)
    assert second.returncode == 0, second.stderr
    (run,) = (mc.read(file) for file in tmp_path.rglob("*.h5"))
    seconds = run.timing["seconds"]
    assert seconds[-1] > 200 * HEARING
    assert all(before <= after for before, after in pairwise(seconds))
