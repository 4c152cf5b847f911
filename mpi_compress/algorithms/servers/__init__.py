"""Servers: how x moves along a direction."""

from mpi_compress.algorithms.parts import Server, servers
from mpi_compress.core.registry import import_all

import_all(__name__, servers)

__all__ = ["Server", "servers"]
