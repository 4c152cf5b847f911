"""Servers: how x moves along a direction."""

from mpi_compress.algorithms.parts import Server, servers

servers.found_in(__name__)

__all__ = ["Server", "servers"]
