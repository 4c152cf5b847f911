import numpy as np

from mpi_compress.messages.kinds import Vector
from mpi_compress.messages.robust.base import OfByzantine, Vectors, robust_means


@robust_means.register("trimmed-mean")
class TrimmedMean(OfByzantine):
    """The coordinate trimmed mean: of each coordinate the mean of the n values without the f least and the f largest."""

    count: int | None = None  # f, values dropped at each end; left out: as many as [workers] calls byzantine
    paper = "Yin, Chen, Ramchandran, Bartlett (ICML 2018), option II; not checked against the paper"

    def of(self, vs: Vectors) -> Vector:
        f = self.count or 0
        return np.sort(vs, axis=0)[f : len(vs) - f].mean(axis=0)
