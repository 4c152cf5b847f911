"""Metrics: numbers of a point that a job adds to its trace."""

# ruff: noqa: F401
from mpi_compress.problem.metrics.base import Metric, ProblemView, metrics

metrics.found_in(__name__)
