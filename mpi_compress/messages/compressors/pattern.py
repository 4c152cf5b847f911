from mpi_compress.core.fields import AtLeastOne
from mpi_compress.core.streams import Round
from mpi_compress.kernels.vectors import taken
from mpi_compress.messages.compressors.base import compressors
from mpi_compress.messages.compressors.perm_k import Dealt
from mpi_compress.messages.kinds import Compressed, Cyclic, Known, Vector, cyclic_indices


@compressors.register("pattern")
class Pattern(Dealt):
    """(n/s)·v_j at worker i's coordinates j of a pattern that has each coordinate at s of the n workers (CompressedScaffnew §3).

    The rows of the pattern go round and round; its columns are dealt to workers at random, alike for all workers of a round. A
    worker has ⌊sd/n⌋ or ⌈sd/n⌉ coordinates, and s/n is the chance that it has one: unbiased with ω = n/s − 1. The mean of equal
    a_i is exact: E‖(1/n) Σ C_i(a_i) − ā‖² = A((1/n) Σ ‖a_i‖² − ‖ā‖²) with A = (n − s)/(s(n − 1)).

    A message holds the seed, of 32 bits, and the worker's number; indices are drawn again by the receiver.
    """

    s: AtLeastOne = 2  # workers that have a coordinate; those of the run at most
    makes = Cyclic
    paper = "CompressedScaffnew: Condat, Agarský, Richtárik (2022), §3"

    def check(self, dim: int) -> None:
        super().check(dim)
        if self.n is not None and self.s > self.n:
            raise ValueError(f"s = {self.s} workers should have each coordinate, and there are {self.n}")

    def compress(self, v: Vector, t: Round) -> Compressed:
        n, seed = self.workers(t), t.common_seed
        indices = cyclic_indices(v.size, seed, t.who, n, self.s)
        return Cyclic(v.size, seed, t.who, n, self.s, taken(v, indices) * (n / self.s))

    def known(self, dim: int) -> Known:
        return {"parts": self.n, "copies": self.s}

    def omega(self, dim: int) -> float:
        assert self.n is not None
        return self.n / self.s - 1.0
