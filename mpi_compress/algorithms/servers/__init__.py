"""Servers: how x moves along a direction."""

from mpi_compress.algorithms.parts import servers

servers.found_in(__name__)
