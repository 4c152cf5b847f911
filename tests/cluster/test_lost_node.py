"""On a real SLURM a node is lost: its task is queued again on another, waits for what is left of it, and ends in the same bytes."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from helpers import slurm_here
from helpers.layouts import assert_equal
from helpers.running import BIN, gone_on

import mpi_compress as mc
from mpi_compress.results.locks import is_being_written

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(slurm_here.missing()), reason=slurm_here.missing())]

PART = """
import time
from dataclasses import dataclass
import mpi_compress as mc
from mpi_compress.messages.compressors.top_k import TopK

@mc.compressors.register("slow")
@dataclass(frozen=True)
class Slow(mc.Compressor):
    def compress(self, v, t):
        time.sleep({seconds})
        return TopK(3).compress(v, t)
"""
JOB = """
plugins = ["slow_part"]
data = { generator = "gspar", samples = 80, dim = 40 }
objective = { mu = "1e-3 L" }
workers = { count = 2 }
stop = { rounds = 150 }
checkpoint = { every = 5 }
algorithm = { name = "ef", batch = 1 }
up = { compressor = { name = "slow" } }
"""


def until(condition, seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        logs = "\n".join(f.read_text() for f in Path("results").rglob("slurm-*.out"))
        assert time.monotonic() < deadline, f"not within {seconds} s; the tasks' output:\n{logs}"
        time.sleep(0.5)


@pytest.mark.parametrize("left", ["plays on", "is killed later"])
def test_a_task_of_a_lost_node_waits_for_what_is_left_and_loses_nothing(left, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("lost.toml").write_text(JOB)
    Path("slow_part.py").write_text(PART.format(seconds=0.0))
    (whole,) = mc.run("lost.toml", out="whole")
    Path("slow_part.py").write_text(PART.format(seconds=0.2))
    folder = tmp_path / "slurm"
    with slurm_here.cluster(folder, nodes=2, cpus=4) as slurm:

        def asked(*line: str | Path) -> str:
            return subprocess.run([*map(str, line)], env=slurm, capture_output=True, text=True, check=True, timeout=100).stdout

        asked(BIN / "mpi-compress", "submit", "lost.toml", "--launcher", "mpiexec", "--nodes", "1")
        until(lambda: any(is_being_written(part) for part in Path("results").rglob("*.part")) and [*Path("results").rglob("*.ckpt")])
        node = asked("squeue", "-h", "--me", "-o", "%N").strip()
        os.kill(int((folder / f"slurmd-{node}.pid").read_text()), signal.SIGKILL)
        programs = [p for p in map(int, filter(str.isdigit, os.listdir("/proc"))) if _plays(p)]
        assert programs
        asked("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=lost")
        log = next(iter(Path("results").rglob("slurm-*.out")))
        until(lambda: log.read_text().count(" task begins") == 2)
        until(lambda: "waiting" in log.read_text())
        if left == "is killed later":
            for program in programs:
                try:
                    os.kill(program, signal.SIGKILL)
                except ProcessLookupError:
                    continue
        until(lambda: not asked("squeue", "-h", "--me").strip())
    (there,) = map(mc.read, Path("results").rglob("*.h5"))
    assert there.trace["loss"].tobytes() == whole.trace["loss"].tobytes()
    assert_equal(whole.file, there.file)
    assert bool(gone_on(log.read_text())) == (left == "is killed later")


def _plays(process: int) -> bool:
    """True for a process that plays this job."""
    try:
        return b"lost.toml" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False
