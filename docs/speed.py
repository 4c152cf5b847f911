"""The section "Speed" of docs/contributing.md: what `python -m benchmarks losses limits rows script layouts growth` finds on this machine; python docs/speed.py > benchmarks/speed.md

Start it in the repository's folder, with MPI_COMPRESS_DATA naming the folder of the published sets.
"""

import subprocess
import sys
from pathlib import Path
from types import ModuleType

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import growth, layouts, limits, losses, rows, script

PAGE = """## Speed

Made by `python docs/speed.py > benchmarks/speed.md`; `python -m benchmarks` prints more. Compare columns, not milliseconds: they are medians of turns in one
process, on one thread of whatever machine the page was made on, beside other programs.

### Loss and gradient of a shard

*fused*: one pass over the samples by `mpi_compress.kernels.shards`. *SciPy*: `A @ x`, the log-loss in NumPy, `A.T @ slopes`, in the floats of the data;
the fused pass adds in float64 always. *NumPy / fused*: a loss of one's own with `value_and_slope`.

What makes the pass fast changes no bit of a result, and the order of additions is written down in `mpi_compress/kernels/shards.py`:

- Samples are taken in blocks. All losses of a block are computed at once, by an exponential and a logarithm of our own: four at a time on a processor with
  AVX2, the same bits on every processor.
- If x has more than 65,536 coordinates, the coordinates of x and of the gradient that later nonzeros touch are fetched ahead.
- Dense samples of more than 2,048 numbers are added to the gradient while the next eight are multiplied by x, so that each is read from memory once.
- If the values of each sample are equal, as in sets of zeros and ones, only one value a sample is read (which takes 8 bytes a sample more of memory).
"""

SCALE = """
### Scale

| by hand, on two quiet cores | seconds, memory | | | seconds, memory |
| --- | --- | --- | --- | --- |
| five methods × 50 rounds of the demo, 16 ranks (64; 128) | 14 (66; 117): 4 (21; 47) to start Python, 4 (24; 30) rounds | | rcv1-like (url-like, 2.8·10⁸ nonzeros) at full size, 10 rounds of GD | 39 (160) at first, as rows are drawn; then 5.3, 0.8 GB (26, 4.1 GB) |
| 10⁵ workers, d = 20, 10 rounds of EF21 top-2 (DIANA qsgd-4) | rounds 0.6 (1.2), evaluation 0.1; the whole command for both 11, 0.4 GB; 10⁶ workers, beside other programs: rounds 6.4 (12), the whole command 34, 2.2 GB | | LIBSVM text of 3 GB (10 GB, 6.7·10⁸ nonzeros) | `data info` 15, 0.4 GB (25, 0.6 GB); `run`, 10 rounds: 40, then 9.2 (3 rounds: 142 of processor time, then 13; within 1 GB of memory 20) |
| 2,000 runs of 10 rounds (500) | plan 6.6 (2.5), run 37 (9.8), table 12, plot 23, results ls 5.7 | | 10⁶ logged rounds of GD, 4 workers, d = 10 | 157, by 50,000 of them: rounds 77, evaluation and counting 78; a file of 219 MB |
| FedNL, 142 workers, top-8d, µ = 1e-3, to ‖∇f‖ ≤ 1e-12 on one core: a9a (phishing, w8a) | 1.3 (1.1, 2.1), in 24 (25, 24) rounds | | ufednl in C++, by its authors' options, one thread | 6.1 (1.4), in 90 (76) rounds; w8a: 4.9e-3 after 60 rounds in 25 |"""


def main() -> None:
    print(PAGE, flush=True)
    play(losses)
    sections = {"Limits": limits, "Messages": rows, "Beside a script": script, "Ranks and cores": layouts, "Growth with n and d": growth}
    for title, module in sections.items():
        print(f"\n### {title}\n\n{module.__doc__}", flush=True)
        play(module)
    print(SCALE)


def play(module: ModuleType) -> None:
    """Run a benchmark in a process of its own: the system counts a parent's memory as its child's."""
    subprocess.run([sys.executable, "-c", f"import {module.__name__} as it; it.main()"], check=True)


if __name__ == "__main__":
    main()
