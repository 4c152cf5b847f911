"""Downlinks: what workers hear, and whose memory and x are."""

from mpi_compress.algorithms.parts import Downlink, downlinks

downlinks.found_in(__name__)

__all__ = ["Downlink", "downlinks"]
