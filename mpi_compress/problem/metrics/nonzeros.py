import numpy as np

from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.metrics.base import Metric, ProblemView, metrics


@metrics.register("nonzeros")
class Nonzeros(Metric):
    """The number of coordinates of x that are not 0."""

    def value(self, x: Vector, problem: ProblemView) -> float:
        return float(np.count_nonzero(x))
