import numpy as np

from mpi_compress.messages.kinds import Vector
from mpi_compress.messages.robust.base import RobustMean, Vectors, robust_means


@robust_means.register("median")
class Median(RobustMean):
    """The coordinate median: of each coordinate the middle one of the n values, or the mean of the two in the middle."""

    paper = "Yin, Chen, Ramchandran, Bartlett (ICML 2018), option I; not checked against the paper"

    def of(self, vs: Vectors) -> Vector:
        return np.median(vs, axis=0)
