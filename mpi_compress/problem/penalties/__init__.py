"""Penalties r(x), which f adds to the mean loss."""

from mpi_compress.problem.penalties.base import Penalty, penalties

penalties.found_in(__name__)

__all__ = ["Penalty", "penalties"]
