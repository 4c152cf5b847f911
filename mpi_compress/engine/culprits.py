"""Which part returned NaN or infinity, asked once, as a run ends for it."""

from collections.abc import Iterator

import numpy as np

from mpi_compress.algorithms.hosted import HostedWorkers
from mpi_compress.messages.kinds import Vector
from mpi_compress.messages.link import Link
from mpi_compress.problem.points import Point


def culprits(hosted: HostedWorkers, uplink: Link, downlink: Link, x: Vector, k: int) -> Iterator[tuple[str, OverflowError]]:
    """The workers hosted here whose f_i has no finite gradient at x (d,), and who compresses a finite one to what is not finite,
    with what is wrong; nothing where x is not finite itself."""
    if not np.isfinite(x).all():
        return
    t = hosted.round(k)
    for places, block in hosted.fs.blocks():
        for i, gradient in zip(range(len(hosted.fs))[places], block.at(Point.at(x))[1], strict=True):
            who = f"worker {hosted.fs.who[i]}"
            if not np.isfinite(gradient).all():
                yield who, OverflowError(f"its gradient is not finite, at an x of magnitude up to {np.abs(x).max():.3g}")
                return
            for sender, link in ((who, uplink), ("the master", downlink)):
                try:
                    link.within_floats(gradient, link.compress(gradient, t[i]))
                except OverflowError as error:
                    yield sender, error
                    return
