"""How tests run jobs: by the command, on ranks, and by Python calls that are stopped in between."""

import io
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.core.signals import Interrupts
from mpi_compress.job.loading import parse_job

BIN = Path(sys.executable).parent
PATIENT = 600.0  # seconds that only what hangs takes: a machine with other work is ten times as slow as a quiet one
GSPAR = {"generator": "gspar", "samples": 100, "dim": 40, "seed": 2}

SMALL_JOB = """
title = "small"
seed = 3
data = { generator = "gspar", samples = 120, dim = 40 }
objective.mu = "1e-3 L"
workers.count = 7
cost = { model = "packet", c1 = "16 B", c0 = "8 B", pmax = "16 B" }
stop.rounds = 12
[[run]]
label = "GD"
algorithm = { name = "gd" }
[[run]]
label = "GD, floats of 32 bits, regulariser at the master"
algorithm = { name = "gd", regularizer = "master" }
up = { compressor = "identity", codec = { name = "dense", float = 32 } }
[[run]]
label = "top-3"
algorithm = { name = "gd" }
up = { compressor = { name = "top-k", k = 3 } }
[[run]]
label = "random 10%"
algorithm = { name = "gd", step = "0.1/L" }
up = { compressor = { name = "random-k", k = "10%" } }
down = { compressor = { name = "top-k", k = 5 }, codec = { name = "fixed", float = 32 } }
[[run]]
label = "CAT"
algorithm = { name = "cat" }
"""


def command(
    *arguments: str | Path, ranks: int | None = None, timeout: float = PATIENT, **variables: str
) -> subprocess.CompletedProcess:
    """Run `mpi-compress`, under mpiexec where `ranks` is given."""
    launcher = [BIN / "mpiexec", "-n", str(ranks)] if ranks else []
    line = [str(a) for a in (*launcher, BIN / "mpi-compress", *arguments)]
    return subprocess.run(line, capture_output=True, text=True, timeout=timeout, env={**os.environ, **variables})


def here(*arguments: str | Path) -> subprocess.CompletedProcess:
    """Call `mpi-compress` in this process, which saves the start of another."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            status = main([str(a) for a in arguments])
        except SystemExit as end:  # of a wrong option
            status = int(end.code or 0)
    return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())


def below_data(text: str) -> list[str]:
    """The lines of a plan from its heads to its count, or of what `show` prints, below those that say the data first."""
    lines = text.splitlines()
    assert any(line.startswith("data: ") for line in lines), text
    return [line for line in lines if not re.match(r"data: |index  label|\d+ of \d+ runs done", line)]


def run_of(folder, algorithm, up=None, data=GSPAR, count=5, rounds=200, seed=0, **tables):
    """One run of a job, as a result."""
    tables = {
        "data": data, "algorithm": algorithm, "workers": {"count": count}, "objective": {"mu": "1e-2 L"}, "seed": seed,
        "stop": {"rounds": rounds}, **tables,
        **({"up": up if "compressor" in up else {"compressor": up}} if isinstance(up, dict) else {}),
    }  # fmt: skip
    return mc.run(parse_job(tables, "test", folder, {}), out=folder, fresh=True)[0]


class After(Interrupts):
    """Asks the run to stop when it has been asked `times` times before."""

    def __init__(self, times: int):
        super().__init__()
        self.times = times

    def wish(self) -> str:
        self.times -= 1
        return "the test" if self.times < 0 else ""


def gone_on(said: str) -> list[int]:
    """The rounds that runs went on from, as the command says."""
    return [int(k.replace(",", "")) for k in re.findall(r": goes on from round ([\d,]*\d)\b", said)]


def nothing_left(said: str) -> bool:
    """True if `submit` had nothing to submit."""
    return "nothing to submit: all runs are done or in the queue" in said.splitlines()


def rows_in(folder: Path) -> bool:
    """True if a run in this folder is in its rounds."""
    return any("round" in mc.read(part).trace for part in folder.rglob("*.part") if part.stat().st_size > 10_000)


def wait_for(what: Callable[[], object], every: float = 0.05) -> None:
    """Return when `what` becomes true."""
    deadline = time.monotonic() + PATIENT
    while not what():  # what becomes true need not stay so: a file may be written to
        assert time.monotonic() < deadline
        time.sleep(every)
