"""Double encoding gives one set of bytes on any ranks, and every node holds the same x and v."""

import subprocess

import pytest
from helpers.layouts import assert_equal_on, layouts, played_in_one_process
from helpers.running import BIN

JOB = """
title = "aiade"
seed = 5
[data]
generator = "gspar"
samples = 90
dim = 40
[objective]
mu = "1e-2 L"
[workers]
count = 7
[stop]
rounds = 40
[log]
every = 3
"""
BOUND = 'compressor = { name = "lattice", range = "bound" }'
RUNS = {
    "iade": 'algorithm = { name = "iade" }',
    "iade bound": f'algorithm = {{ name = "iade", level = 0.1 }}\nup = {{ {BOUND} }}\ndown = {{ {BOUND} }}',
    "aiade": 'algorithm = { name = "aiade" }',
    "aiade bound": f'algorithm = {{ name = "aiade" }}\nup = {{ {BOUND} }}\ndown = {{ {BOUND} }}',
    "dqgd": 'algorithm = { name = "dqgd" }',
    "iade-sgd": 'algorithm = { name = "iade-sgd", batch = 2, sampling = "epoch" }',
    "svrg": 'algorithm = { name = "svrg", batch = 3, regularizer = "master" }\nup = { compressor = { name = "qsgd", levels = 4 } }',
    "floor": 'algorithm = { name = "iade", rate = "1 - 0.99*step*mu", level = "1e-12*g0" }',
}


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    runs = "".join(f'[[run]]\nlabel = "{name}"\n{tables}\n' for name, tables in RUNS.items())
    return played_in_one_process(tmp_path_factory.mktemp("one"), "aiade", JOB + runs)


@layouts(2, 10)
def test_results_are_equal_byte_for_byte(ranks, options, played, tmp_path):
    assert_equal_on(ranks, options, played, tmp_path)


WATCH = """
import hashlib, sys
from mpi4py import MPI
import mpi_compress as mc
from mpi_compress.engine import playing as play
from mpi_compress.exchange import Local
from mpi_compress.engine.observer import Observer

seen = []

class Watch(Observer):
    def look(self, k, algorithm, node, workers, finite):
        if not isinstance(self.exchange, Local):
            held = hashlib.sha256(b"".join(a.tobytes() for a in vars(node).values() if hasattr(a, "tobytes"))).digest()
            everyone = MPI.COMM_WORLD.allgather(held)
            assert len(set(everyone)) == 1, f"round {k}"
            seen.append(k)
        return super().look(k, algorithm, node, workers, finite)

play.Observer = Watch
mc.run(mc.load_job(sys.argv[1]), comm=MPI.COMM_WORLD, out=sys.argv[2])
assert len(seen) > 7 * 40
"""


def test_what_every_node_holds_is_equal_on_all_of_them_at_every_round(played, tmp_path):
    line = [BIN / "mpiexec", "-n", "3", BIN / "python", "-m", "mpi4py", "-c", WATCH, played[0], tmp_path]
    done = subprocess.run([str(a) for a in line], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
