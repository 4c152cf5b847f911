from mpi_compress.core.fields import AtLeastOne
from mpi_compress.core.streams import Round
from mpi_compress.kernels.vectors import taken
from mpi_compress.messages.compressors.base import compressors
from mpi_compress.messages.compressors.perm_k import Dealt
from mpi_compress.messages.kinds import Compressed, Cyclic, Known, Vector, cyclic_indices


@compressors.register("pattern")
class Pattern(Dealt):
    """(n/s)·v_j at worker i's coordinates j of a pattern that has each coordinate at s of the n workers (CompressedScaffnew §3).

    The rows of the pattern go round and round; its columns are assigned to workers at random, alike for all workers of a round. A
    worker has ⌊sd/n⌋ or ⌈sd/n⌉ coordinates, and s/n is the chance that it has one: unbiased with ω = n/s − 1. The mean of equal
    a_i is exact: E‖(1/n) Σ C_i(a_i) − ā‖² = A((1/n) Σ ‖a_i‖² − ‖ā‖²) with A = (n − s)/(s(n − 1)).

    A message holds the seed, of 32 bits, and the worker's number; indices are drawn again by the receiver.
    """

    s: AtLeastOne = 2  # workers that have a coordinate; all of them, where there are no more
    makes = Cyclic
    paper = "CompressedScaffnew: Condat, Agarský, Richtárik (2022), §3"

    @property
    def copies(self) -> int:
        """How many workers have a coordinate: s, or all of fewer."""
        return self.s if self.n is None else min(self.s, self.n)

    def compress(self, v: Vector, t: Round) -> Compressed:
        n, s, seed = self.workers(t), self.copies, t.common_seed
        indices = cyclic_indices(v.size, seed, t.who, n, s)
        return Cyclic(v.size, seed, t.who, n, s, taken(v, indices) * (n / s))

    def known(self, dim: int) -> Known:
        return {"parts": self.n, "copies": self.copies}

    def omega(self, dim: int) -> float:
        assert self.n is not None
        return self.n / self.copies - 1.0
