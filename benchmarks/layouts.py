"""Three runs of 200 rounds on census-income, 8 workers, on 1 … 2 × cores ranks: seconds of each layout, and shares of the cores.

*clock*: the run's own seconds; *share*: one process's clock over that and over the cores that so many ranks can use; *evaluation* is off
the clock; *wall*: the whole command for all three, from the shell; *rest*: the wall without rounds, which is start, preparing, reading,
the warm-up and the files; *processor*: seconds of all processes. Data, optimum and kernels are cached by a job before.
It needs a quiet machine, and census-income in $MPI_COMPRESS_DATA.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

JOB = """
data = { name = "census-income" }
objective = { mu = "1e-3 L" }
workers = { count = 8, master = "MASTER" }
cost = { model = "packet", c1 = "128 B", c0 = "64 B", pmax = "128 B" }
stop = { rounds = 200 }

[[run]]
label = "gd"
algorithm = { name = "gd" }

[[run]]
label = "ef21 top-10"
algorithm = { name = "ef21" }
up = { compressor = { name = "top-k", k = 10 } }

[[run]]
label = "CAT S+Q"
algorithm = { name = "cat" }
up = { compressor = { name = "sq" } }
"""
TURNS = 3
LABELS = ("gd", "ef21 top-10", "CAT S+Q")



def play(folder: Path, ranks: int, master: str) -> tuple[float, float, list[Any]]:
    """Wall and processor seconds of the job's command, and its runs in the job's order."""
    from mpi_compress import read

    tools = Path(sys.executable).parent
    line = [str(tools / "mpi-compress"), "run", "job.toml", "--fresh", "--quiet", "--out", f"{ranks}-{master}"]
    (folder / "job.toml").write_text(JOB.replace("MASTER", master))
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    subprocess.run([*([str(tools / "mpiexec"), "-n", str(ranks)] if ranks > 1 else []), *line], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    wall, after = perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    runs = [read(file) for file in folder.glob(f"{ranks}-{master}/job/*.h5")]
    by_label = {run.label: run for run in runs}
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, [by_label[label] for label in LABELS]


def main() -> None:
    if not (Path(os.environ.get("MPI_COMPRESS_DATA", "")) / "census-income.xz").exists():
        print("left out: census-income is not in $MPI_COMPRESS_DATA")
        return
    cores = len(os.sched_getaffinity(0))
    layouts = [(1, "worker"), *((ranks, "worker") for ranks in range(2, 2 * cores + 2)), (2, "dedicated")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        play(folder, 1, "worker")  # data, optimum and kernels
        played = {layout: [play(folder, *layout) for _ in range(TURNS)] for layout in layouts}
        alone = [median(float(turn[2][i].timing["seconds"][-1]) for turn in played[1, "worker"]) for i in range(len(LABELS))]
        print("| layout | " + " | ".join(f"{label}, s (share)" for label in LABELS) + " | evaluation, s | wall, s | rest, s | processor, s |")
        print("| --- |" + " ---: |" * (len(LABELS) + 4))
        for (ranks, master), turns in played.items():
            wall, processor = median(turn[0] for turn in turns), median(turn[1] for turn in turns)
            clocks = [median(float(turn[2][i].timing["seconds"][-1]) for turn in turns) for i in range(len(LABELS))]
            shares = [one / (clock * min(ranks, cores)) for one, clock in zip(alone, clocks, strict=True)]
            evaluation = median(sum(float(run.timing["evaluate"][-1]) for run in turn[2]) for turn in turns)
            rounds = median(sum(json.loads(run.attrs["wall"])["rounds"] for run in turn[2]) for turn in turns)
            each = " | ".join(f"{clock:.2f} ({share:.2f})" for clock, share in zip(clocks, shares, strict=True))
            layout = "one process" if ranks == 1 else f"{ranks} ranks, master {master}"
            print(f"| {layout} | {each} | {evaluation:.2f} | {wall:.2f} | {wall - rounds:.2f} | {processor:.2f} |", flush=True)
            if any(run.trace["loss"][-1] != first.trace["loss"][-1] for run, first in zip(turns[0][2], played[1, "worker"][0][2], strict=True)):
                print("   the last losses are not those of one process")


if __name__ == "__main__":
    main()
