"""What a message costs beside the gradient: rounds with 20 workers on a9a, with 1,000 and 100,000 short ones, and on two ranks.

*of GD*: a round's own seconds over those of gradient descent in the same job; *two of one*: over those in one process, where the last
round alone is logged, and where every round is. *calls*: Python calls of the package a round with 16 workers. The other two lines are
seconds of rounds. It needs a quiet machine, and a9a in $MPI_COMPRESS_DATA.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import mpi_compress as mc

ROUNDS, TURNS = 1000, 3
METHODS = """
[[run]]
label = "GD"
algorithm = { name = "gd" }
[[run]]
label = "EF21 top-2"
algorithm = { name = "ef21", step = "1e-3/L" }
up = { compressor = { name = "top-k", k = 2 } }
[[run]]
label = "DIANA qsgd-4, elias"
algorithm = { name = "diana" }
up = { compressor = { name = "qsgd", levels = 4 }, codec = "elias-omega" }
[[run]]
label = "DIANA qsgd-4, entropy"
algorithm = { name = "diana" }
up = { compressor = { name = "qsgd", levels = 4 }, codec = "entropy" }
[[run]]
label = "CAT sq"
algorithm = { name = "cat" }
up = { compressor = "sq" }
"""
A9A = 'data = { name = "a9a" }\nobjective = { mu = "1e-3 L", f_star = "skip" }\nworkers.count = 20\nstop.rounds = 1\n' + METHODS
MANY = """
data = { generator = "gspar", samples = SAMPLES, dim = 20 }
objective = { mu = "1e-3 L", f_star = "skip" }
workers.count = WORKERS
stop.rounds = 1
""" + METHODS
LABELS = [line.split('"')[1] for line in METHODS.splitlines() if line.startswith("label")]


def seconds(job: str, folder: Path, rounds: int, every: int, ranks: int = 1, only: list[str] = LABELS) -> dict[str, float]:
    """Seconds of each run's rounds by its own clock."""
    (folder / "job.toml").write_text(job)
    shutil.rmtree(folder / "out", ignore_errors=True)
    tools = Path(sys.executable).parent
    line = [tools / "mpi-compress", "run", "job.toml", "--fresh", "--quiet", "--out", "out", "--force"]
    line += [part for key, value in (("stop.rounds", rounds), ("log.every", every)) for part in ("--set", f"{key}={value}")]
    line += [part for label in only for part in ("--only", label)]
    launcher = [tools / "mpiexec", "-n", str(ranks)] if ranks > 1 else []
    subprocess.run([str(part) for part in (*launcher, *line)], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    runs = {run.label: run for run in map(mc.read, folder.glob("out/job/*.h5"))}
    return {label: float(runs[label].timing["seconds"][-1]) for label in only}


def calls(label: str, folder: Path) -> float:
    """Python calls of the package a round, with 16 workers."""
    counted = dict[int, int]()
    for rounds in (20, 70):
        job = mc.load_job(folder / "few.toml", {"stop.rounds": rounds, "log.every": rounds}, label)
        mc.run(job, out=folder / "counted", fresh=True)  # compiles
        count = 0

        def see(frame, event, argument):
            nonlocal count
            count += event == "call" and "mpi_compress" in frame.f_code.co_filename

        sys.setprofile(see)
        try:
            mc.run(job, out=folder / "counted", fresh=True)
        finally:
            sys.setprofile(None)
        counted[rounds] = count
    return (counted[70] - counted[20]) / 50


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "few.toml").write_text(MANY.replace("WORKERS", "16").replace("SAMPLES", "64"))
        print("| method | of GD | two of one | the same, every round logged | calls |\n| --- | ---: | ---: | ---: | ---: |")
        if not (Path(os.environ.get("MPI_COMPRESS_DATA", "")) / "a9a.xz").exists():
            print("left out: a9a is not in $MPI_COMPRESS_DATA")
            return
        seconds(A9A, folder, 10, 10)  # data and kernels
        ways = [(ranks, every) for every in (ROUNDS, 1) for ranks in (1, 2)]
        turns = [{way: seconds(A9A, folder, ROUNDS, way[1], way[0]) for way in ways} for _ in range(TURNS)]
        for label in LABELS:
            of_gd = median(turn[1, ROUNDS][label] / turn[1, ROUNDS]["GD"] for turn in turns)
            two = [median(turn[2, every][label] / turn[1, every][label] for turn in turns) for every in (ROUNDS, 1)]
            print(f"| {label} | {of_gd:.2f} | {two[0]:.2f} | {two[1]:.2f} | {calls(label, folder):.0f} |", flush=True)
        for workers, rounds in ((1_000, 200), (100_000, 10)):
            job = MANY.replace("WORKERS", str(workers)).replace("SAMPLES", str(workers))
            found = seconds(job, folder, rounds, rounds, only=LABELS[:3])
            said = ", ".join(f"{label} {took:.2f} s" for label, took in found.items())
            print(f"\n{workers:,} workers, d = 20, {rounds} rounds: {said}", flush=True)


if __name__ == "__main__":
    main()
