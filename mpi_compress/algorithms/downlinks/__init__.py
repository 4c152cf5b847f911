"""Downlinks: what workers hear, and whose memory and x are."""

from mpi_compress.algorithms.parts import downlinks

downlinks.found_in(__name__)
