"""Stops: rules of [stop] that end a run, beside its levels and budgets. One file, one rule."""

from mpi_compress.core.registry import import_all
from mpi_compress.job.stops.base import StopRule, stops

import_all(__name__, stops)

__all__ = ["StopRule", "stops"]
