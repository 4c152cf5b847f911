"""Servers: how x moves along a direction."""

from mpi_compress.algorithms.parts import Server, servers
from mpi_compress.core.registry import import_all

register = servers.register
import_all(__name__)

__all__ = ["Server", "register", "servers"]
