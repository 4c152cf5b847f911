"""Metrics: numbers of a point that a job adds to its trace."""

from mpi_compress.core.registry import import_all
from mpi_compress.problem.metrics.base import Metric, ProblemView, metrics

register = metrics.register
import_all(__name__)

__all__ = ["Metric", "ProblemView", "metrics", "register"]
