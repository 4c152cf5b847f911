"""Programs on ranks that are killed, and what is left of them."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

GONE_WITHIN = 10.0  # seconds


def marked(mark: str) -> dict[int, int]:
    """Process → rank of all that carry this mark in their environment; −1 for what is no rank."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            variables = dict(v.split("=", 1) for v in (process / "environ").read_text().split("\0") if "=" in v)
        except (OSError, UnicodeDecodeError):
            continue
        if variables.get("FAULTS_MARK") == mark:
            found[int(process.name)] = int(variables.get("PMI_RANK", -1))
    return found


def ranks_of(mark: str) -> dict[int, int]:
    """Rank → process."""
    return {rank: process for process, rank in marked(mark).items() if rank >= 0}


def states(*processes: int) -> list[str]:
    """What the system says that they are doing."""
    files = [Path(f"/proc/{pid}/stat") for pid in processes]
    return [f.read_text()[:40] for f in files if f.exists()]


def begun(line: Sequence[str | Path], mark: str) -> subprocess.Popen[str]:
    """The program, its processes marked."""
    environment = {**os.environ, "FAULTS_MARK": mark}
    words = [str(word) for word in line]
    return subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def wait(program: subprocess.Popen[str], seconds: float) -> bool:
    """Wait so long, or until the program ends; True if it has not ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and program.poll() is None:
        time.sleep(0.02)
    return program.poll() is None


def kill(program: subprocess.Popen[str], mark: str, draw: random.Random) -> tuple[str, float]:
    """Kill a worker, the master or mpiexec, and wait until nothing is left: which it was, and the seconds until then."""
    ranks = ranks_of(mark)
    victims = {"master": ranks.get(0, program.pid), "mpiexec": program.pid}
    if len(ranks) > 1:
        victims["worker"] = ranks[draw.choice(sorted(ranks)[1:])]
    kind = draw.choice(sorted(victims))
    os.kill(victims[kind], signal.SIGKILL)
    killed = time.monotonic()
    while (left := ranks_of(mark)) or program.poll() is None:
        assert time.monotonic() < killed + GONE_WITHIN, f"{kind} killed: left are {states(program.pid, *left.values())}"
        time.sleep(0.02)
    return kind, time.monotonic() - killed
