"""Methods on links that were measured, CAT by default: `python tests/links.py [JOB] [-o FOLDER]`, as root on Linux.

For each emulated link, a master on one host and its workers on two others: the link is calibrated, the job is run with that table, and
what each run needed in real seconds to the level of [stop] is printed beside what the fitted model says.
"""

import argparse
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
from helpers import hosts

import mpi_compress as mc
from mpi_compress.messages.costs.table import Table
from mpi_compress.results.targets import Target

LINKS = {"5 ms, 1 Gbit/s": (5.0, 1000.0), "50 ms, 10 Mbit/s": (50.0, 10.0)}
HOSTS = 3
BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[1]


def play(job: Path, folder: Path, delay_ms: float, rate_mbit: float, settings: list[str]) -> list[mc.Run]:
    """Calibrate, run, read."""
    folder.mkdir(parents=True, exist_ok=True)
    variables = {**os.environ, "MPI_COMPRESS_CROWDED": "1"}  # hosts do not know that they share the cores of this one
    with hosts.emulated(HOSTS, delay_ms, rate_mbit) as mpiexec:
        for line in (["calibrate", "-o", "link.toml", "--largest", "1 MB", "--repeats", "10"], ["run", str(job), "--out", "."]):
            ranks = str(HOSTS if line[0] == "run" else 2)
            extra = [part for s in settings for part in ("--set", s)] if line[0] == "run" else []
            done = subprocess.run([*mpiexec, ranks, BIN / "mpi-compress", *line, *extra], cwd=folder, env=variables, check=False)
            if done.returncode not in (0, 3):
                raise SystemExit(f"{line[0]} ended with status {done.returncode}")
    return [mc.read(file) for file in sorted(folder.rglob("*.h5"))]


def modelled(run: mc.Run, row: int, table: Table) -> float:
    """Seconds on the link up to a row: in each round a message up, the longest, and one down to each of the other hosts."""
    up = np.diff(run.workers["wire_bits_up"][: row + 1], axis=0)
    down = np.diff(run.trace["wire_bits_down"][: row + 1]) / run.attrs["n_workers"]
    others = HOSTS - 1
    up = np.array([up[:, i::others].sum(axis=1) for i in range(others)]).max(axis=0)  # workers of one host share a message
    return float(np.sum(table.cost(up)) + np.sum(table.cost(others * down)))


def told(name: str, runs: list[mc.Run], target: Target, table: Table) -> None:
    fit = table.cost(np.array([0.0, 8e6]))
    print(f"\n{name}: measured {1e3 * fit[0]:.3g} ms a message, {1e3 * (fit[1] - fit[0]):.4g} ms a megabyte\n")
    print(f"| run | seconds to {target} | rounds | ms a round | by the model | of it computing | mean T |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for run in sorted(runs, key=lambda r: target.took(r, "seconds")):
        found = target.row_of(run)
        row = len(run.trace["loss"]) - 1 if found is None else found
        seconds, rounds = run.timing["seconds"][row], int(run.trace["round"][row])
        own = sum(run.timing[part][row] for part in ("compute", "pack", "update"))
        text = f"{seconds:.2f}" if found is not None else f"> {seconds:.0f} ({target.column} {run.trace[target.column][row]:.3g})"
        budget = f"{np.mean(run.trace['budget'][1 : row + 1]):.0f}" if "budget" in run.trace else "–"
        print(
            f"| {run.label} | {text} | {rounds} | {1e3 * seconds / rounds:.1f} | {1e3 * (modelled(run, row, table) + own) / rounds:.1f} "
            f"| {1e3 * own / rounds:.1f} | {budget} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", nargs="?", type=Path, default=ROOT / "jobs" / "cat" / "links.toml")
    parser.add_argument("-o", dest="folder", type=Path, default=Path("results") / "links")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    if why := hosts.missing():
        raise SystemExit(why)
    stop = tomllib.loads(options.job.read_text())["stop"]
    target = next(Target.of(key, stop[key]) for key in ("loss", "suboptimality") if key in stop)
    for name, (delay, rate) in LINKS.items():
        folder = options.folder / name.replace(" ", "").replace(",", "-").replace("/", "")
        runs = play(options.job.resolve(), folder, delay, rate, options.set)
        told(name, runs, target, Table(str(folder / "link.toml")))


if __name__ == "__main__":
    main()
