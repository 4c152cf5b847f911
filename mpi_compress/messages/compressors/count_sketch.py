from dataclasses import dataclass

import numpy as np

from mpi_compress.core.streams import Round
from mpi_compress.messages.compressors.base import Compressor, Count, compressors, count_of
from mpi_compress.messages.kinds import Compressed, Known, Sketch, Vector
from mpi_compress.messages.kinds.sketch import hashes


@compressors.register("count-sketch")
@dataclass(frozen=True)
class CountSketch(Compressor):
    """A table of r × b sums of ±v_j, from which v_j is read as the mean of its r estimates (Charikar, Chen, Farach-Colton 2002).

    Row i adds s_i(j) v_j to its bucket h_i(j); all workers of a round share h and s, which are drawn anew in each round. The mean
    of rows is unbiased with ω = (d − 1)/(rb), and linear, so that the mean of workers' messages is the sketch of the mean. (The
    median of rows, which finds heavy coordinates, is biased.)
    """

    columns: Count  # b, buckets of a row: a count or a share of d, "1%"
    rows: int = 1  # r, rows, each with hashes of its own
    makes = Sketch
    codec = "seeded"
    paper = "Charikar, Chen, Farach-Colton (2002); FetchSGD (2020)"

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise ValueError(f"rows = {self.rows} was given; it should be at least 1")

    def compress(self, v: Vector, t: Round) -> Compressed:
        columns, seed = count_of(self.columns, v.size), t.common_seed
        drawn = hashes(v.size, seed, self.rows, columns)
        table = np.array([np.bincount(bucket, weights=sign * v, minlength=columns) for bucket, sign in drawn])
        return Sketch(v.size, table, seed)

    def known(self, dim: int) -> Known:
        return {"rows": self.rows, "columns": count_of(self.columns, dim)}

    def check(self, dim: int) -> None:
        count_of(self.columns, dim)

    def omega(self, dim: int) -> float:
        return (dim - 1) / (self.rows * count_of(self.columns, dim))
