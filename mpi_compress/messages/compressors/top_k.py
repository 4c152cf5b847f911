import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.streams import Round
from mpi_compress.kernels import select
from mpi_compress.messages.compressors.base import BulkCompressor, Count, OfK, compressors, count_of
from mpi_compress.messages.kinds import Compressed, Sparse, SparseRows, Vector


@compressors.register("top-k")
class TopK(OfK, BulkCompressor):
    """The k coordinates of largest magnitude, ties to the lowest index (CAT eq. 2).  Contractive with δ = k/d (CAT Lemma 2).

    Where features are 0 and 1, many sums of a few rows have the same magnitude: on mushrooms with minibatches of 4 every thirtieth
    message of error feedback has a tie for the third place. The rounding of floats decides others: another order of additions, or
    an error in units of x, keeps another coordinate, and two right programs part by some per cent.
    """

    k: Count | None = None  # k, how many coordinates are sent: a count or a share of d, "0.2%"; left out: the algorithm sets it
    paper = "CAT eq. 2"

    def compress(self, v: Vector, t: Round) -> Compressed:
        return Sparse(v.size, *select.largest_with_values(v, count_of(self.k, v.size)))

    def compress_all(self, vs: NDArray[np.float64], rows: NDArray[np.int64]) -> SparseRows:
        dim = vs.shape[1]
        k = count_of(self.k, dim)
        indices, values = select.largest_of_rows(vs, rows, k)
        return SparseRows(dim, indices, values, k * np.arange(1, rows.size + 1))

    def keeps_largest(self, dim: int) -> int:
        return count_of(self.k, dim)

    def delta(self, dim: int) -> float:
        return count_of(self.k, dim) / dim
