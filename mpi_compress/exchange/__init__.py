"""The exchange of messages between workers and master, in one process or over MPI."""

from mpi_compress.exchange.base import Exchange

__all__ = ["Exchange"]
