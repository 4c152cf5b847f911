"""Whole commands beside the script that a user would write, `_script.py`, on one and two ranks: wall seconds, medians of turns.

a9a, 20 workers, 2000 rounds of gd, of error feedback with top-2, and of CAT with top-k for packets; every round evaluated, and none.
Data, optimum and kernels are cached by a job before; the script reads the data from .npz. *load*: so many busy processes beside it.

python -m benchmarks.script [gd] [ef] [cat] [evaluated] [not] [turns=3] [rounds=2000] [load=0]
"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

JOB = """
data = {{ name = "a9a" }}
objective = {{ mu = "1e-3 L" }}
workers = {{ count = 20 }}
cost = {{ model = "packet", c1 = "128 B", c0 = "64 B", pmax = "128 B" }}
stop = {{ rounds = {rounds} }}
log = {{ every = {every} }}
up = {{ codec = {{ name = "fixed", float = 64 }}, compressor = {up} }}
algorithm = {{ name = "{method}" {step} }}
"""
UP = {"gd": '"identity"', "ef": '{ name = "top-k", k = 2 }', "cat": '"top-k"'}


def line(folder: Path, whose: str, ranks: int, method: str, evaluated: bool, rounds: int) -> list[str]:
    """The command."""
    tools = Path(sys.executable).parent
    mpiexec = [str(tools / "mpiexec"), "-n", str(ranks)] if ranks > 1 else []
    if whose == "script":
        script = Path(__file__).with_name("_script.py")
        return [*mpiexec, sys.executable, str(script), str(folder), method, str(rounds), str(int(evaluated))]
    job = folder / f"{method}-{evaluated}.toml"
    step = ', step = "0.25/L"' if method == "ef" else ""
    job.write_text(JOB.format(rounds=rounds, every=1 if evaluated else rounds, up=UP[method], method=method, step=step))
    return [*mpiexec, str(tools / "mpi-compress"), "run", str(job), "--fresh", "--quiet", "--out", str(folder / f"{ranks}")]


def took(command: list[str]) -> float:
    start = perf_counter()
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}  # else each start compiles what it imports
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)
    return perf_counter() - start


def save_a9a(folder: Path) -> None:
    """A.npz and y.npy of what the package reads."""
    from scipy.sparse import save_npz, vstack

    from mpi_compress.problem.datasets.libsvm import read_blocks

    _, samples, labels = zip(*read_blocks(Path(os.environ["MPI_COMPRESS_DATA"]) / "a9a.xz", 123), strict=True)
    save_npz(folder / "A.npz", vstack(samples, format="csr"), compressed=False)
    np.save(folder / "y.npy", np.concatenate(labels))


def _busy() -> None:
    while True:
        pass


def measure(folder: Path, method: str, evaluated: bool, rounds: int, turns: int) -> None:
    ways = [(whose, ranks) for whose in ("script", "ours") for ranks in (1, 2)]
    commands = {way: line(folder, *way, method, evaluated, rounds) for way in ways}
    for ranks in (1, 2):
        took(line(folder, "ours", ranks, method, evaluated, rounds))
    times: dict[tuple[str, int], list[float]] = {way: [] for way in ways}
    for _ in range(turns):
        for way, command in commands.items():
            times[way].append(took(command))
    s1, s2, o1, o2 = (median(times[way]) for way in ways)
    said = "evaluated" if evaluated else "not"
    numbers = (s1, s2, o1, o2, o1 / s1, o2 / s2, s2 / s1, o2 / o1)
    print(f"| {method} | {said} | {' | '.join(f'{number:.2f}' for number in numbers)} |", flush=True)


def main(arguments: list[str] = []) -> None:  # noqa: B006
    numbers = {"turns": 3, "rounds": 2000, "load": 0} | {k: int(v) for k, _, v in (a.partition("=") for a in arguments) if v}
    methods = [m for m in UP if m in arguments] or [*UP]
    kinds = [e for e, name in ((True, "evaluated"), (False, "not")) if name in arguments] or [True, False]
    if not (Path(os.environ.get("MPI_COMPRESS_DATA", "")) / "a9a.xz").exists():
        print("left out: a9a is not in $MPI_COMPRESS_DATA")
        return
    load = [multiprocessing.Process(target=_busy, daemon=True) for _ in range(numbers["load"])]
    for process in load:
        process.start()
    print("| method | rounds | script, s | 2 ranks | ours, s | 2 ranks | ours / script | 2 ranks | script 2 / 1 | ours 2 / 1 |")
    print("| --- | --- |" + " ---: |" * 8)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_a9a(folder)
        for method in methods:
            for evaluated in kinds:
                measure(folder, method, evaluated, numbers["rounds"], numbers["turns"])
    for process in load:
        process.kill()


if __name__ == "__main__":
    main(sys.argv[1:])
