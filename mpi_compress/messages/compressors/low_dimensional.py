"""Few numbers of a vector: linear maps that all workers of a round share, and matrices of low rank."""

from typing import Annotated

import numpy as np
import scipy  # which loads linalg where it is first used

from mpi_compress.core.fields import AtLeastOne, within
from mpi_compress.core.streams import Round, Rounds
from mpi_compress.messages.compressors.base import Compressor, Count, Sized, compressors, count_of, evaluated
from mpi_compress.messages.kinds import Compressed, Eigenpairs, Projections, SideInfo, Sketch, Vector, side_of, square
from mpi_compress.messages.kinds.low_dimensional import gaussians, hashes


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
        values, vectors = _at_both_ends(square(v), self.rank)
        kept = np.argsort(-np.abs(values), kind="stable")[: self.rank]
        return Eigenpairs(v.size, values[kept], np.ascontiguousarray(vectors[:, kept].T))

    def known(self, dim: int) -> SideInfo:
        return {"rank": self.rank}

    def check(self, dim: int) -> None:
        if self.rank > side_of(dim):
            raise ValueError(f"rank = {self.rank} is more than the {side_of(dim)} eigenvalues there are")

    def delta(self, dim: int) -> float:
        return min(1.0, self.rank / side_of(dim))


def _at_both_ends(M: Vector, rank: int) -> tuple[Vector, Vector]:
    """Eigenvalues (m,) and -vectors (s, m) of M (s, s), those `rank` of largest magnitude among them: of the largest the ones ≥ 0,
    of the least the ones < 0, by M's tridiagonal form; or all, where that is no slower."""
    s = len(M)
    if 16 * rank < s and 1e-100 < np.abs(M).max() < 1e100:  # squares neither vanish nor overflow
        lapack, values, vectors, fails = scipy.linalg.lapack, np.empty(0), np.empty((s, 0)), 0
        reflectors, d, e, τ, _ = lapack.dsytrd(M.T, lower=1, lwork=32 * s)
        for last, sign in ((s, 1.0), (rank, -1.0)):
            _, w, blocks, splits, lost = lapack.dstebz(d, e, 2, 0.0, 0.0, last - rank + 1, last, 0.0, "B")
            mine = np.flatnonzero(np.copysign(1.0, w[:rank]) == sign)
            blocks[: mine.size] = blocks[mine]
            u, failed = lapack.dstein(d, e, w[mine], blocks, splits)
            values, vectors, fails = np.append(values, w[mine]), np.hstack([vectors, u]), fails + lost + failed
        if not fails and values.size >= rank:
            vectors[1:] = lapack.dormqr("L", "N", reflectors[1:, :-1], τ, vectors[1:], 32 * s)[0]
            return values, vectors
    return np.linalg.eigh(M)


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

    def compress_rows(self, V: Vector, t: Rounds) -> Compressed:
        d, seed = V.shape[1], t.common_seed
        ξ = gaussians(d, seed, count_of(self.m, d))
        with np.errstate(invalid="ignore", over="ignore"):
            return Projections(d, np.array([(ξ * v).sum(axis=1) for v in V]), np.full(len(V), seed))

    def known(self, dim: int) -> SideInfo:
        return {"m": count_of(self.m, dim)}

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

    def compress_rows(self, V: Vector, t: Rounds) -> Compressed:
        d, seed = V.shape[1], t.common_seed
        columns = self._columns(d)
        drawn = hashes(d, seed, self.rows, columns)
        tables = [[np.bincount(bucket, weights=sign * v, minlength=columns) for bucket, sign in drawn] for v in V]
        return Sketch(d, np.array(tables), np.full(len(V), seed))

    def _columns(self, dim: int) -> int:
        return count_of(evaluated(self.columns, "columns = b"), dim)

    def known(self, dim: int) -> SideInfo:
        return {"rows": self.rows, "columns": self._columns(dim)}

    def payload(self, dim: int, fpp: int) -> float:
        return fpp * self.rows * self._columns(dim)

    def omega(self, dim: int) -> float:
        return (dim - 1) / (self.rows * self._columns(dim))
