"""Penalties r(x), which f adds to the mean loss."""

# ruff: noqa: F401
from mpi_compress.problem.penalties.base import Penalty, penalties

penalties.found_in(__name__)
