"""Downlinks: what workers hear, and whose memory and x are."""

from mpi_compress.algorithms.parts import Downlink, downlinks
from mpi_compress.core.registry import import_all

import_all(__name__, downlinks)

__all__ = ["Downlink", "downlinks"]
