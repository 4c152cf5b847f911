"""How messages cross: in one process, or over MPI. Nothing else has to know."""

from mpi_compress.exchange.base import Exchange, Local

__all__ = ["Exchange", "Local"]
