"""Images in blocks of rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.problem.datasets.formats.base import Blocks

_ROWS = 4096  # of a block


def blocks_of(pixels: NDArray[np.uint8], labels: NDArray[Any]) -> Blocks:
    """Blocks of images (N, pixels) as numbers from 0 to 1, with their labels (N,)."""
    for number, start in enumerate(range(0, len(pixels), _ROWS)):
        yield number, pixels[start : start + _ROWS] / 255.0, labels[start : start + _ROWS].astype(float)
