from dataclasses import replace

from mpi_compress.core.fields import AtLeastOne
from mpi_compress.core.streams import Round
from mpi_compress.kernels.vectors import taken
from mpi_compress.messages.compressors.base import AmongWorkers, compressors
from mpi_compress.messages.kinds import Compressed, Cyclic, Known, Vector, cyclic_indices


@compressors.register("pattern")
class Pattern(AmongWorkers):
    """(n/s)·v_j at worker i's coordinates j of a pattern that has each coordinate at s of the n workers (CompressedScaffnew §3).

    The rows of the pattern go round and round; its columns are dealt to workers at random, alike for all workers of a round. A
    worker has ⌊sd/n⌋ or ⌈sd/n⌉ coordinates, and s/n is the chance that it has one: unbiased with ω = n/s − 1. The mean of equal
    a_i is exact: E‖(1/n) Σ C_i(a_i) − ā‖² = A((1/n) Σ ‖a_i‖² − ‖ā‖²) with A = (n − s)/(s(n − 1)).

    A message holds the seed, of 32 bits, and the worker's number; indices are drawn again by the receiver.
    """

    s: AtLeastOne = 2  # workers that have a coordinate; those of the run at most
    n: AtLeastOne | None = None  # the number of workers; left out: as the run has them
    makes = Cyclic
    codec = "seeded"
    paper = "CompressedScaffnew: Condat, Agarský, Richtárik (2022), §3"

    def among(self, n: int) -> "Pattern":
        if self.n not in (None, n):
            raise ValueError(f"n = {self.n} was given, and there are {n} workers; leave n out")
        if self.s > n:
            raise ValueError(f"s = {self.s} workers should have each coordinate, and there are {n}")
        return replace(self, n=n)

    def check(self, dim: int) -> None:
        if self.n is None:
            raise ValueError("needs n = the number of workers (a run sets it)")
        if self.s > self.n:
            raise ValueError(f"s = {self.s} must be at most n = {self.n}")

    def compress(self, v: Vector, t: Round) -> Compressed:
        assert self.n is not None
        if t.who >= self.n:
            raise ValueError(f"worker {t.who} compresses by pattern with n = {self.n}")
        seed = t.common_seed
        indices = cyclic_indices(v.size, seed, t.who, self.n, self.s)
        return Cyclic(v.size, seed, t.who, self.n, self.s, taken(v, indices) * (self.n / self.s))

    def known(self, dim: int) -> Known:
        return {"parts": self.n, "copies": self.s}

    def omega(self, dim: int) -> float:
        assert self.n is not None
        return self.n / self.s - 1.0
