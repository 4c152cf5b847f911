"""Metrics: numbers of a point that a job adds to its trace."""

from mpi_compress.core.registry import import_all
from mpi_compress.problem.metrics.base import Metric, ProblemView, metrics

import_all(__name__, metrics)

__all__ = ["Metric", "ProblemView", "metrics"]
