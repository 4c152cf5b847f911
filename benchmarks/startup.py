"""The first second: processor seconds and wall seconds until a command ends, beside Python alone and the import of the libraries.

The job is one run of three rounds with CAT on the demo's data. Its kernels, data and optimum are cached by a run before.
"""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

JOB = """
data = { generator = "gspar", c1 = 0.01, c2 = 0.9, labels_from = "scaled" }
objective = { mu = "1e-3 L" }
workers = { count = 4 }
cost = { model = "packet", c1 = "128 B", c0 = "64 B", pmax = "128 B" }
stop = { rounds = 3 }
algorithm = { name = "cat" }
"""


def took(line: list[str], folder: str, times: int = 7) -> tuple[float, float]:
    """Medians of processor and wall seconds of a command, after one to warm up."""
    seconds = []
    for _ in range(times + 1):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
        subprocess.run([sys.executable, *line], cwd=folder, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"MPI_COMPRESS_CACHE": folder})
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, perf_counter() - start))
    processor, wall = zip(*seconds[1:], strict=True)
    return median(processor), median(wall)


def main() -> None:
    run = ["-m", "mpi_compress", "run", "job.toml", "--quiet", "--one-process"]
    lines = {
        "python": ["-c", "pass"],
        "import numpy, scipy, h5py, mpi4py": ["-c", "import numpy, scipy, h5py, mpi4py"],
        "mpi-compress --version": ["-m", "mpi_compress", "--version"],
        "mpi-compress --help": ["-m", "mpi_compress", "--help"],
        "first run, kernels cached": [*run, "--fresh"],
        "run of a job that is done": run,
    }
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "job.toml").write_text(JOB)
        print(f"{'':34s} processor    wall, s")
        for name, line in lines.items():
            processor, wall = took(line, folder)
            print(f"{name:34s} {processor:9.2f} {wall:7.2f}", flush=True)


if __name__ == "__main__":
    main()
