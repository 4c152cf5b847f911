"""Linear maps to few numbers, which all workers of a round share."""

import numpy as np

from mpi_compress.core.fields import AtLeastOne
from mpi_compress.core.streams import Round
from mpi_compress.messages.compressors.base import Count, Sized, compressors, count_of
from mpi_compress.messages.kinds import Compressed, Known, Projections, Sketch, Vector
from mpi_compress.messages.kinds.sketch import gaussians, hashes


@compressors.register("core")
class Core(Sized):
    """m numbers p_j = ⟨v, ξ_j⟩, whatever d is, read as (1/m) Σ p_j ξ_j (CORE: Yue, Zhao, Liu, Zhang, Fang 2023, Algorithm 1).

    The ξ_j are independent standard normal vectors, drawn in each round and shared by its workers. Then E C(v) = v and
    E‖C(v) − v‖² = ((d + 1)/m)‖v‖², so ω = (d + 1)/m. It is linear: the mean of workers' messages is that of their mean. A round
    draws m·d normal numbers, which takes longer than a sparse gradient.
    """

    m: Count = 1  # numbers sent: a count, or a share of d, "1%"
    size_field = "m"
    makes = Projections
    codec = "seeded"
    paper = "CORE (2023), Algorithm 1"

    def compress(self, v: Vector, t: Round) -> Compressed:
        m, seed = count_of(self.m, v.size), t.common_seed
        with np.errstate(invalid="ignore", over="ignore"):
            return Projections(v.size, (gaussians(v.size, seed, m) * v).sum(axis=1), seed)

    def known(self, dim: int) -> Known:
        return {"m": count_of(self.m, dim)}

    def check(self, dim: int) -> None:
        count_of(self.m, dim)

    def payload(self, dim: int, fpp: int) -> float:
        return fpp * count_of(self.m, dim)

    def omega(self, dim: int) -> float:
        return (dim + 1) / count_of(self.m, dim)


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
