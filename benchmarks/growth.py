"""Wall seconds and peak memory of a whole command, five rounds of CAT and of EF21, for 1 to 1000 workers and d from 10³ to 3·10⁶.

20,000 samples in one process; data, L and kernels are cached by a first run with one worker. x* is not computed. Gradients of few samples cost
what their nonzeros do, in time and in memory; a worker of EF21 has a vector g_i of d numbers of its own, so that memory grows like
n · d, and where that is more than is free, the run is refused.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

JOB = """
data = {{ generator = "{generator}", samples = 20000, dim = {dim} }}
objective = {{ mu = "1e-3 L", f_star = "skip" }}
workers = {{ count = {n} }}
cost = {{ model = "packet", c1 = "128 B", c0 = "64 B", pmax = "128 B" }}
stop = {{ rounds = 5 }}
algorithm = {{ name = "{algorithm}" }}
up = {{ compressor = {{ name = "top-k"{size} }} }}
"""
SETS = (("rcv1-like", 1_000), ("rcv1-like", 47_236), ("url-like", 3_231_961))
SIZES = {"cat": "", "ef21": ", k = 100"}


def play(folder: Path, generator: str, dim: int, algorithm: str, n: int) -> str:
    """What a run took, or that it was refused."""
    file = folder / "job.toml"
    file.write_text(JOB.format(generator=generator, dim=dim, algorithm=algorithm, n=n, size=SIZES[algorithm]))
    start = perf_counter()
    child = subprocess.Popen([sys.executable, "-m", "mpi_compress", "run", str(file), "--fresh", "--quiet"], cwd=folder, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    took = f"{perf_counter() - start:.1f} s, {used.ru_maxrss / 2**20:.2f} GiB"
    return {0: took, 2: "refused"}.get(child.returncode, f"ended with {child.returncode}")


def rows(folder: Path) -> Iterator[str]:
    for generator, dim in SETS:
        for algorithm in SIZES:
            play(folder, generator, dim, algorithm, 1)
            took = [play(folder, generator, dim, algorithm, n) for n in (1, 10, 100, 1000)]
            yield f"| {generator} | {dim:,} | {algorithm} | {' | '.join(took)} |"


def main() -> None:
    print("| data | d | method | n = 1 | n = 10 | n = 100 | n = 1000 |")
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        for row in rows(Path(folder)):
            print(row, flush=True)


if __name__ == "__main__":
    main()
