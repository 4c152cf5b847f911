"""`mpi-compress emulate JOB --link "5 ms, 1 Gbit/s"`: runs on emulated hosts, their seconds beside those of the calibrated link."""

import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np

from mpi_compress.core.errors import UserError
from mpi_compress.core.expressions import bits_per_second, seconds
from mpi_compress.core.tables import shown
from mpi_compress.core.terminal import say
from mpi_compress.messages.costs import CostModel, costs
from mpi_compress.planning import emulation
from mpi_compress.results.files import job_name
from mpi_compress.results.reader import Run, read

_CALIBRATE = ["calibrate", "-o", "link.toml", "--largest", "1 MB", "--repeats", "10"]
_HEADS = ["run", "status", "rounds", "seconds", "by the model", "ms a round", "by the model", "of which computing"]


def act(options: Namespace) -> int:
    delay, rate = _link(options.link)
    job = job_name(Path(options.job))  # which may need the link's table
    if why := emulation.missing():
        raise UserError(f"emulate: {why}")
    folder = Path(options.out) / job / f"{delay:g}ms-{rate:g}Mbit"
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [f"--{name}={value}" for name in ("only", "set") for value in getattr(options, name) or ()]
    chosen += [f"--{name}" for name in ("full", "quiet") if getattr(options, name)]
    run = ["run", str(Path(options.job).absolute()), "--out", ".", *chosen]
    with emulation.emulated(options.hosts, delay, rate) as mpiexec:
        for ranks, line in ((2, _CALIBRATE), (options.hosts, run)):
            words = [*mpiexec, str(ranks), sys.executable, "-m", "mpi_compress", *line]
            crowded = {**os.environ, "MPI_COMPRESS_CROWDED": "1"}  # hosts do not know that they share this one's cores
            if (status := subprocess.run(words, cwd=folder, env=crowded, check=False).returncode) not in (0, 3):
                return status
    link = costs.build({"name": "table", "file": str(folder / "link.toml")}, "--link")
    runs = sorted(map(read, (folder / job).glob("*.h5")), key=lambda run: run.timing["seconds"][-1])
    rows = [_row(run, link, options.hosts - 1) for run in runs]
    say(f"{options.link}, {options.hosts} hosts:", *shown(sys.stdout, _HEADS, rows, _HEADS[:0]))
    print(f"`mpi-compress table {folder / job}/*.h5 --to COLUMN=LEVEL --by seconds` compares them at a target")
    return 0


def _link(text: str) -> tuple[float, float]:
    """The delay in ms and the rate in Mbit/s of "5 ms, 1 Gbit/s"."""
    try:
        delay, _, rate = text.partition(",")
        return 1e3 * seconds(delay), bits_per_second(rate.strip()) / 1e6
    except ValueError as error:
        raise UserError(f'--link {text}: a delay and a bandwidth are required, such as "5 ms, 1 Gbit/s" ({error})') from None


def _row(run: Run, link: CostModel, others: int) -> list[str]:
    """A run's seconds as measured and by the model: in each round a message up, the longest, and one down to each other host."""
    each, down = np.diff(run.workers["wire_bits_up"], axis=0), np.diff(run.trace["wire_bits_down"]) / run.attrs["n_workers"]
    up = np.max([each[:, i::others].sum(axis=1) for i in range(others)], axis=0)  # workers of one host share a message
    between = np.diff(run.trace["round"])  # rounds between two records, each with a mean message
    computing = sum(run.timing[part][-1] for part in ("compute", "pack", "update"))
    waited = float(np.sum(between * (link.cost(up / between) + link.cost(others * down / between))))
    measured, modelled, rounds = run.timing["seconds"][-1], waited + computing, max(1, int(run.trace["round"][-1]))
    numbers = [f"{measured:.3g}", f"{modelled:.3g}", *(f"{1e3 * each / rounds:.3g}" for each in (measured, modelled, computing))]
    return [run.label, run.status, str(rounds), *numbers]
