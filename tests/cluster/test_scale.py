"""Long runs and many workers: nothing grows that should not. `pytest -s` shows the figures."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from helpers.running import command

import mpi_compress as mc
from mpi_compress.core.signals import Interrupts

pytestmark = pytest.mark.slow

JOB = """
data = {{ generator = "gspar", samples = {samples}, dim = {dim} }}
objective = {{ mu = 0.01 }}
workers = {{ count = {count} }}
stop = {{ rounds = {rounds} }}
log = {{ every = {every} }}
checkpoint = {{ every = "30 s" }}
algorithm = {{ name = "ef", step = 0.01 }}
up = {{ compressor = {{ name = "top-k", k = 3 }} }}
"""


def memory() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


class Watch(Interrupts):
    """Looks at the memory whenever it is asked whether to end."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def wish(self) -> str:
        self.seen.append((time.monotonic(), memory()))
        return ""


def test_a_million_rounds_take_no_more_memory_and_no_more_time_each(tmp_path):
    file = tmp_path / "soak.toml"
    file.write_text(JOB.format(samples=20, dim=10, count=2, rounds=1_000_000, every=100))
    watch = Watch()
    (run,) = mc.run(mc.load_job(file), out=tmp_path, interrupts=watch)
    seconds, rounds = run.timing["seconds"], run.trace["round"]
    assert rounds[-1] == 1_000_000
    each = np.diff(seconds) / np.diff(rounds)
    first, last = (np.quantile(part, 0.1) for part in (each[1000:3000], each[-2000:]))  # when nothing else had the core
    held = np.array([m for _, m in watch.seen])
    settled, end = held[len(held) // 10 : len(held) // 5].mean(), held[-len(held) // 10 :].mean()
    print(
        f"\n{seconds[-1]:.0f} s; a round {1e6 * first:.1f} µs early, {1e6 * last:.1f} µs late; {settled / 2**20:.1f} MiB, then {end / 2**20:.1f}"
    )
    assert end - settled < 2 * 2**20
    assert last < 1.25 * first


PROGRAM = """
import sys
from pathlib import Path
import numpy as np
import mpi_compress as mc
small, large = (mc.load_job(file) for file in sys.argv[1:3])
held = lambda: int(Path("/proc/self/statm").read_text().split()[1]) * 4096
least = lambda run: float(np.min(np.diff(run.timing["seconds"])))
mc.run(small, out="warm")
before = held()
one = least(mc.run(small, out="out")[0])
middle = held()
many = least(mc.run(large, out="out")[0])
print(one, many, middle - before, held() - middle)
"""


def test_ten_thousand_workers_in_one_process_cost_what_a_thousand_do_each(tmp_path):
    files = []
    for count in (1000, 10_000):
        files.append(tmp_path / f"n{count}.toml")
        files[-1].write_text(JOB.format(samples=2 * count, dim=50, count=count, rounds=25, every=1))
    program = [sys.executable, "-c", PROGRAM, *map(str, files)]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=580)
    assert done.returncode == 0, done.stderr
    one, many, _, grown = (float(word) for word in done.stdout.split())
    print(
        f"\n{1e6 * one / 1000:.1f} µs a round and worker of 1000, {1e6 * many / 10_000:.1f} µs of 10,000; {grown / 10_000 / 1000:.1f} kB a worker"
    )
    assert 0.8 < (many / 10_000) / (one / 1000) < 1.2
    assert grown / 10_000 < 20_000


def test_a_thousand_workers_on_four_ranks(tmp_path):
    file = tmp_path / "many.toml"
    file.write_text(JOB.format(samples=2000, dim=50, count=1000, rounds=25, every=5))
    (whole,) = mc.run(mc.load_job(file), out=tmp_path / "one")
    done = command("run", file, "--out", tmp_path / "ranks", "--quiet", ranks=4, timeout=300)
    assert done.returncode == 0, done.stderr
    run = mc.read(next((tmp_path / "ranks").rglob("*.h5")))
    assert run.trace["loss"].tobytes() == whole.trace["loss"].tobytes()
    rounds = run.trace["round"][-1]
    print(
        f"\n{1e3 * run.timing['seconds'][-1] / rounds:.1f} ms a round on four ranks, {1e3 * whole.timing['seconds'][-1] / rounds:.1f} in one process"
    )
