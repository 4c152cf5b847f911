"""Stops: rules of [stop] that end a run, beside its levels and budgets. One file, one rule."""

from mpi_compress.job.stops.base import StopRule, stops

stops.found_in(__name__)

__all__ = ["StopRule", "stops"]
