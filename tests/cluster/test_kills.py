"""Every algorithm, killed at random moments and gone on with on another layout, ends in the bytes of a run that nothing happened to."""

import os
import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
import tomli_w
from helpers.examples import ALGORITHMS, GENERATED, SHARED_MEMORY
from helpers.killing import Kills, Program, begun, kill, marked, wait
from helpers.layouts import DOWN, assert_equal
from helpers.running import BIN

import mpi_compress as mc

pytestmark = pytest.mark.slow
KILLS = 50
RANKS = (None, 2, 3, 5)  # None: one process without mpiexec
MASTERS = ("dedicated", "worker")


def started(file: Path, out: Path, exchange: str, mark: str, draw: random.Random) -> Program:
    ranks, master = draw.choice(RANKS), draw.choice(MASTERS)
    launcher = [BIN / "mpiexec", "-n", str(ranks)] if ranks else []
    settings = ["--set", f"workers.exchange={exchange}", "--set", f"workers.master={master}"]
    return begun([*launcher, BIN / "mpi-compress", "run", file, "--out", out, *settings], mark)


def written(file: Path, runs: dict[str, dict]) -> Path:
    often = {"log": {"every": 20}, "checkpoint": {"every": 25}}
    file.write_text(tomli_w.dumps({**GENERATED, "run": [{"label": label, **run, **often} for label, run in runs.items()]}))
    return file


@pytest.fixture(scope="module")
def job(tmp_path_factory) -> tuple[Path, Path]:
    """A job of all algorithms, and its results when nothing happens."""
    folder = tmp_path_factory.mktemp("whole")
    file = written(folder / "all.toml", {label: {**run, "stop": {"rounds": 600}} for label, run in ALGORITHMS.items()})
    mc.run(mc.load_job(file), out=folder)
    return file, folder / "all"


@pytest.mark.parametrize("exchange", ["p2p", "allgather"])
def test_kills_over_all_algorithms_and_layouts_lose_nothing(exchange, job, tmp_path):
    kill_and_compare(job, exchange, exchange, tmp_path, DOWN if exchange == "allgather" else ())


def kill_and_compare(job: tuple[Path, Path], exchange: str, name: str, folder: Path, left_out: Sequence[str] = ()) -> None:
    file, reference = job
    wanted = sorted(f.name for f in reference.glob("*.h5"))
    kills = Kills(KILLS, random.Random(name), longest=9.0)
    while kills.done.total() < KILLS:
        out = folder / str(kills.programs)
        kills.until_it_ends(partial(started, file, out, exchange, draw=kills.draw))
        assert sorted(f.name for f in (out / "all").iterdir()) == wanted
        for each in wanted:
            assert_equal(reference / each, out / "all" / each, left_out)
    print(f"\n{name}: {kills} of {len(wanted)} runs")


def test_async_sgd_that_is_killed_leaves_no_shared_memory(tmp_path):
    file = tmp_path / "shared.toml"
    (run,) = SHARED_MEMORY.values()
    file.write_text(tomli_w.dumps({**GENERATED, **run, "stop": {"rounds": 10**8}}))
    draw = random.Random(1)
    before = set(Path("/dev/shm").iterdir())
    for place in range(6):
        mark = f"{os.getpid()}-shared-{place}"
        program = begun([BIN / "mpiexec", "-n", "3", BIN / "mpi-compress", "run", file, "--out", tmp_path], mark)
        assert wait(program, draw.uniform(3.0, 8.0)), program.communicate()[1]
        kill(program, mark, draw)
        program.communicate()
        assert not marked(mark)
        assert set(Path("/dev/shm").iterdir()) <= before
