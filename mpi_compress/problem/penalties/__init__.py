"""Penalties r(x), which f adds to the mean loss."""

from mpi_compress.core.registry import import_all
from mpi_compress.problem.penalties.base import Penalty, penalties

import_all(__name__, penalties)

__all__ = ["Penalty", "penalties"]
