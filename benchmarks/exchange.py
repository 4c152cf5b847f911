"""A round of the exchange on 2 and 3 ranks, beside the same bytes sent by plain mpi4py in the same run.

Each worker sends a message to rank 0, which answers all: the median of rank 0's wall clock, and in parentheses the lowest tenth, which other
programs disturb less. Plain mpi4py sends one buffer and receives into
another; the exchange frames messages, allocates what it receives, watches for ranks that hang, and yields cores where ranks share them.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

SIZES = {"1 KB": 1000, "40 KB": 40_000, "4 MB": 4_000_000}


def main() -> None:
    for ranks in (2, 3):
        line = [str(Path(sys.executable).parent / "mpiexec"), "-n", str(ranks), sys.executable, "-m", "mpi4py", "-m", __name__]
        subprocess.run(line, check=True)


def raw(comm: Any, size: int) -> Callable[[], None]:
    """A round by `Send` and `Recv` of whole buffers."""
    data, buffers = np.ones(size + 4, np.uint8), [np.empty(size + 4, np.uint8) for _ in range(1, comm.size)]

    def play() -> None:
        if comm.rank == 0:
            for rank, buffer in enumerate(buffers, 1):
                comm.Recv(buffer, rank)
            for rank in range(1, comm.size):
                comm.Send(data, rank)
        else:
            comm.Send(data, 0)
            comm.Recv(buffers[0], 0)

    return play


def ours(comm: Any, size: int) -> Callable[[], None]:
    """A round by the exchange of a run, one worker on each rank but the first."""
    from mpi_compress.exchange.mpi import PointToPoint
    from mpi_compress.messages.batch import batch_of, together

    exchange, data = PointToPoint(comm, comm.size - 1, False, 1800.0), np.ones(size, np.uint8)

    def play() -> None:
        ups = exchange.gather(together([batch_of(data) for _ in exchange.mine]))
        exchange.broadcast(batch_of(data) if exchange.has_master else None)
        assert len(ups) == (comm.size - 1 if exchange.is_root else 0)

    return play


def measure() -> None:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    for name, size in SIZES.items():
        ways = {"ours": ours(comm, size), "raw": raw(comm, size)}
        took: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(10 if size > 1_000_000 else 40):
            for way, play in ways.items():
                comm.Barrier()
                for _ in range(10):
                    start = perf_counter()
                    play()
                    took[way].append(1e6 * (perf_counter() - start))
        if comm.rank == 0:
            texts = [f"{np.median(took[way]):7.0f} µs ({np.quantile(took[way], 0.1):5.0f})" for way in ways]
            ratios = [np.quantile(took["ours"], q) / np.quantile(took["raw"], q) for q in (0.5, 0.1)]
            print(f"{comm.size} ranks, {name:>5s}: ours {texts[0]}, plain mpi4py {texts[1]}, ratio {ratios[0]:5.2f} ({ratios[1]:5.2f})", flush=True)


if __name__ == "__main__":
    measure()
