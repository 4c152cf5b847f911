"""On a real SLURM a node is lost: its task is queued again on another, waits for what is left of it, and ends in the same bytes."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from helpers import slurm_here
from helpers.layouts import assert_equal
from helpers.running import BIN, gone_on
from helpers.slurm_here import slow_part, wait_until

import mpi_compress as mc
from mpi_compress.results.locks import is_being_written

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(slurm_here.missing()), reason=slurm_here.missing())]

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


@pytest.mark.parametrize("left", ["plays on", "is killed later"])
def test_a_task_of_a_lost_node_waits_for_what_is_left_and_loses_nothing(left, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("lost.toml").write_text(JOB)
    Path("slow_part.py").write_text(slow_part())
    (whole,) = mc.run("lost.toml", out="whole")
    Path("slow_part.py").write_text(slow_part(0.2))
    folder = tmp_path / "slurm"
    with slurm_here.cluster(folder, nodes=2, cpus=4) as slurm:

        def asked(*line: str | Path) -> str:
            return subprocess.run([*map(str, line)], env=slurm, capture_output=True, text=True, check=True, timeout=100).stdout

        asked(BIN / "mpi-compress", "submit", "lost.toml", "--launcher", "mpiexec", "--nodes", "1")
        wait_until(lambda: any(is_being_written(part) for part in Path("results").rglob("*.part")) and [*Path("results").rglob("*.ckpt")])
        node = asked("squeue", "-h", "--me", "-o", "%N").strip()
        os.kill(int((folder / f"slurmd-{node}.pid").read_text()), signal.SIGKILL)
        programs = [p for p in map(int, filter(str.isdigit, os.listdir("/proc"))) if _plays(p)]
        assert programs
        asked("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=lost")
        log = next(iter(Path("results").rglob("slurm-*.out")))
        wait_until(lambda: log.read_text().count(" task begins") == 2)
        wait_until(lambda: "waiting" in log.read_text())
        if left == "is killed later":
            for program in programs:
                try:
                    os.kill(program, signal.SIGKILL)
                except ProcessLookupError:
                    continue
        wait_until(lambda: not asked("squeue", "-h", "--me").strip())
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
