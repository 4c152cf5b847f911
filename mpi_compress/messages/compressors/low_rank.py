from typing import Annotated

import numpy as np

from mpi_compress.core.fields import within
from mpi_compress.core.streams import Round
from mpi_compress.messages.compressors.base import Compressor, compressors
from mpi_compress.messages.kinds import Compressed, Eigenpairs, Known, Vector, side_of, square


@compressors.register("low-rank")
class LargestEigenvalues(Compressor):
    """The R eigenvalues of largest magnitude of a symmetric matrix, with their vectors (FedNL: Safaryan et al. 2022).

    The vector is a matrix's triangle with entries off the diagonal times √2, as FedNL sends Hessians; a vector whose length is no
    s(s + 1)/2 begins one of the least side s that holds it, 0 after it. Contractive with δ = R/s: no matrix of rank R is nearer.
    Where the magnitudes after the R-th are equal to it, several matrices are as near, and where they are almost equal, rounding
    errors grow by one over their gap: two programs, or one started 10⁻¹⁵ away, then part.
    """

    rank: Annotated[int, within("[1, 65535]")] = 1  # R
    makes = Eigenpairs
    codec = "eigenpairs"
    paper = "FedNL (Safaryan et al. 2022)"

    def compress(self, v: Vector, t: Round) -> Compressed:
        s = side_of(v.size)
        if not np.all(np.isfinite(v)):
            return Eigenpairs(v.size, np.full(self.rank, np.nan), np.zeros((self.rank, s)))
        values, vectors = np.linalg.eigh(square(v))
        kept = np.argsort(-np.abs(values), kind="stable")[: self.rank]
        return Eigenpairs(v.size, values[kept], np.ascontiguousarray(vectors[:, kept].T))

    def known(self, dim: int) -> Known:
        return {"rank": self.rank}

    def check(self, dim: int) -> None:
        if self.rank > side_of(dim):
            raise ValueError(f"rank = {self.rank} is more than the {side_of(dim)} eigenvalues there are")

    def delta(self, dim: int) -> float:
        return min(1.0, self.rank / side_of(dim))
