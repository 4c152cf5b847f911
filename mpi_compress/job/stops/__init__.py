"""Stops: rules of [stop] that end a run, beside its levels and budgets. One file, one rule."""

from mpi_compress.core.registry import import_all
from mpi_compress.job.stops.base import StopRule, stops

register = stops.register
import_all(__name__)

__all__ = ["StopRule", "register", "stops"]
