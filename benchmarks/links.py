"""Seconds of a job's runs on emulated hosts, beside those by the cost model of the calibrated link: as root on Linux.

python -m benchmarks.links JOB --link "5 ms, 1 Gbit/s" [--hosts 3] [--only LABEL] [--set KEY=VALUE] [--out FOLDER]

The master has a host, and the others share the workers. Each link has the given delay and rate. The link is calibrated first, into
FOLDER/JOB/5ms-1000Mbit/link.toml, where results go, too; a job may name link.toml as the file of its cost model. Hosts share this
machine's cores: computing takes longer than on hosts of their own.
"""

import os
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks import _hosts
from mpi_compress.core.errors import UserError
from mpi_compress.core.expressions import bits_per_second, seconds
from mpi_compress.core.tables import plain
from mpi_compress.messages.costs import CostModel, costs
from mpi_compress.results.files import job_name
from mpi_compress.results.reader import Run, read

_CALIBRATE = ["calibrate", "-o", "link.toml", "--largest", "1 MB", "--repeats", "10"]
_HEADS = ["run", "status", "rounds", "seconds", "by the model", "ms a round", "by the model", "of which computing"]


def main(arguments: Sequence[str] = ("jobs/demo.toml", "--link=5 ms, 1 Gbit/s")) -> int:
    parser = ArgumentParser(prog="python -m benchmarks.links", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("job", metavar="JOB", type=Path)
    parser.add_argument("--link", required=True, metavar="LINK", help='delay and bandwidth between two hosts: "5 ms, 1 Gbit/s"')
    parser.add_argument("--hosts", type=int, default=3, metavar="N", help="the master's, and those of the workers (default: 3)")
    parser.add_argument("--only", action="append", default=[], metavar="LABEL")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--out", type=Path, default=Path("results"), metavar="FOLDER")
    if why := _hosts.missing():
        print(f"left out: {why}")
        return 0
    options = parser.parse_args(arguments)
    try:
        return _measure(options, *_link(options.link))
    except UserError as error:
        parser.error(str(error))


def _measure(options: Namespace, delay: float, rate: float) -> int:
    job = job_name(options.job)
    folder = options.out / job / f"{delay:g}ms-{rate:g}Mbit"
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [f"--{name}={value}" for name in ("only", "set") for value in getattr(options, name)]
    run = ["run", str(options.job.absolute()), "--out", ".", "--quiet", *chosen]
    with _hosts.emulated(options.hosts, delay, rate) as mpiexec:
        for ranks, line in ((2, _CALIBRATE), (options.hosts, run)):
            words = [*mpiexec, str(ranks), sys.executable, "-m", "mpi_compress", *line]
            crowded = {**os.environ, "MPI_COMPRESS_CROWDED": "1"}  # hosts do not know that they share this one's cores
            if (status := subprocess.run(words, cwd=folder, env=crowded, check=False).returncode) not in (0, 3):
                return status
    link = costs.build({"name": "table", "file": str(folder / "link.toml")}, "--link")
    runs = sorted(map(read, (folder / job).glob("*.h5")), key=lambda run: run.timing["seconds"][-1])
    rows = [_row(run, link, options.hosts - 1) for run in runs]
    print(*plain(_HEADS, rows, "l" * len(_HEADS)), sep="\n")
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
