"""Programs on ranks that are killed, and what is left of them."""

import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

GONE_WITHIN = 10.0  # seconds
Program = subprocess.Popen[str]


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
    """Rank → process; a rank's own children, such as git, carry its number too and came later."""
    return {rank: process for process, rank in sorted(marked(mark).items(), reverse=True) if rank >= 0}


def states(*processes: int) -> list[str]:
    """What the system says that they are doing."""
    files = [Path(f"/proc/{pid}/stat") for pid in processes]
    return [f.read_text()[:40] for f in files if f.exists()]


def begun(line: Sequence[str | Path], mark: str) -> Program:
    """The program, its processes marked."""
    environment = {**os.environ, "FAULTS_MARK": mark}
    words = [str(word) for word in line]
    return subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def wait(program: Program, seconds: float) -> bool:
    """Wait so long, or until the program ends; True if it has not ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and program.poll() is None:
        time.sleep(0.02)
    return program.poll() is None


def kill(program: Program, mark: str, draw: random.Random) -> tuple[str, float]:
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


@dataclass
class Kills:
    """Programs that are killed at random moments and begun again, until so many kills are done."""

    wanted: int
    draw: random.Random
    longest: float  # seconds from a program's begin to its kill, at most
    ranks: int = 0  # it is killed only while it has as many ranks
    done: Counter[str] = field(default_factory=Counter)  # of a worker, the master, mpiexec
    programs: int = 0  # that ended by themselves
    slowest: float = 0.0  # seconds until nothing was left of a program
    again: int = 0  # runs that began again from round 0

    def until_it_ends(self, begin: Callable[[str], Program], after_a_kill: Callable[[Program], None] = lambda program: None) -> None:
        """Kill a program and begin it again, until it ends by itself or the last kill is done.

        Args:
            begin: begins it, its processes marked.
            after_a_kill: looks at the program, and at what it left.
        """
        while True:
            mark = f"{os.getpid()}-{id(self)}-{self.programs}-{self.done.total()}"
            program = begin(mark)
            running = wait(program, self.draw.uniform(0.3, self.longest))
            if self.done.total() == self.wanted or not running or len(ranks_of(mark)) < self.ranks:
                break
            kind, seconds = kill(program, mark, self.draw)
            self.done[kind] += 1
            self.slowest = max(self.slowest, seconds)
            self.again += program.communicate()[1].count("begins again")
            after_a_kill(program)
        said = program.communicate()[1]
        assert program.returncode == 0, said
        self.again += said.count("begins again")
        self.programs += 1

    def __str__(self) -> str:
        ends = f"{self.programs} times to the end, {self.slowest:.2f} s until all were gone"
        return f"{dict(self.done)}, {ends}, {self.again} began again from round 0"
