import numpy as np

from mpi_compress.core.fields import AtLeastOne
from mpi_compress.core.streams import Round
from mpi_compress.messages.compressors.base import Count, Sized, compressors, count_of
from mpi_compress.messages.kinds import Compressed, Known, Sketch, Vector
from mpi_compress.messages.kinds.sketch import hashes


@compressors.register("count-sketch")
class CountSketch(Sized):
    """A table of r × b sums of ±v_j, from which v_j is read as the mean of its r estimates (Charikar, Chen, Farach-Colton 2002).

    Row i adds s_i(j) v_j to its bucket h_i(j); all workers of a round share h and s, which each round draws. The mean
    of rows is unbiased with ω = (d − 1)/(rb), and linear, so that the mean of workers' messages is the sketch of the mean. (The
    median of rows, which finds heavy coordinates, is biased.)
    """

    columns: Count | None = None  # b, buckets of a row: a count or a share of d, "1%"; left out: the algorithm sets it
    rows: AtLeastOne = 1  # r, rows, each with hashes of its own
    size_field = "columns"
    makes = Sketch
    codec = "seeded"
    paper = "Charikar, Chen, Farach-Colton (2002); FetchSGD (2020)"

    def compress(self, v: Vector, t: Round) -> Compressed:
        columns, seed = self._columns(v.size), t.common_seed
        drawn = hashes(v.size, seed, self.rows, columns)
        table = np.array([np.bincount(bucket, weights=sign * v, minlength=columns) for bucket, sign in drawn])
        return Sketch(v.size, table, seed)

    def _columns(self, dim: int) -> int:
        if self.columns is None:
            raise ValueError("needs columns = b (only some algorithms set it)")
        return count_of(self.columns, dim)

    def known(self, dim: int) -> Known:
        return {"rows": self.rows, "columns": self._columns(dim)}

    def check(self, dim: int) -> None:
        self._columns(dim)

    def payload(self, dim: int, fpp: int) -> float:
        return fpp * self.rows * self._columns(dim)

    def omega(self, dim: int) -> float:
        return (dim - 1) / (self.rows * self._columns(dim))
