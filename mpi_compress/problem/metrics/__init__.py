"""Metrics: numbers of a point that a job adds to its trace."""

from mpi_compress.problem.metrics.base import Metric, ProblemView, metrics

metrics.found_in(__name__)

__all__ = ["Metric", "ProblemView", "metrics"]
