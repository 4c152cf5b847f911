"""Coordinates that are assigned to the workers of a round."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from mpi_compress.core.fields import AtLeastOne
from mpi_compress.core.streams import Rounds
from mpi_compress.messages.compressors.base import AmongWorkers, compressors
from mpi_compress.messages.kinds import Compressed, Cyclic, Permuted, SideInfo, Vector


@dataclass(frozen=True)
class SharedOut(AmongWorkers):
    """A compressor that assigns the coordinates of a round to its n workers, by a seed that all of them draw."""

    n: AtLeastOne | None = None  # the number of workers; left out: as the run has them
    codec = "seeded"

    def among(self, n: int) -> Self:
        if self.n not in (None, n):
            raise ValueError(f"n = {self.n} was given, and there are {n} workers; leave n out")
        return replace(self, n=n)

    def check(self, dim: int) -> None:
        if self.n is None:
            raise ValueError("needs n = the number of workers (a run sets it)")

    def workers(self, t: Rounds) -> int:
        """n, among which t.who are."""
        assert self.n is not None
        if (beyond := t.who >= self.n).any():
            raise ValueError(f"worker {t.who[beyond][0]} compresses by {self.name} with n = {self.n}")
        return self.n


@compressors.register("perm-k")
class PermK(SharedOut):
    """n·v_j on worker i's block of a random permutation of the coordinates, the same permutation for all n workers (PermK).

    d ≥ n: n near-equal blocks, given to workers at random; unbiased with ω = n − 1. d < n: one coordinate each, times d; ω = d − 1.
    Messages of a round do not overlap: E‖(1/n) Σ C_i(a_i) − ā‖² = A((1/n) Σ ‖a_i‖² − ‖ā‖²), A = 1 where n divides d, and
    1 − (n − d)/(n − 1) where d divides n > 1, so that equal a_i are averaged exactly.

    A message holds the seed, of 32 bits, and the worker's number; indices are drawn again by the receiver.
    """

    makes = Permuted
    paper = "Szlendak, Tyurin, Richtárik (2021), Definitions 2 and 3"

    def compress_rows(self, V: Vector, t: Rounds) -> Compressed:
        n, d = self.workers(t), V.shape[1]
        empty = Permuted(d, np.full(len(V), t.common_seed), t.who, n, np.empty(0))
        return empty.filled(lambda row, indices: V[row, indices] * float(min(n, d)))

    def known(self, dim: int) -> SideInfo:
        return {"parts": self.n}

    def omega(self, dim: int) -> float:
        assert self.n is not None
        return min(self.n, dim) - 1.0


@compressors.register("pattern")
class Pattern(SharedOut):
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

    def compress_rows(self, V: Vector, t: Rounds) -> Compressed:
        n, s = self.workers(t), self.copies
        empty = Cyclic(V.shape[1], np.full(len(V), t.common_seed), t.who, n, s, np.empty(0))
        return empty.filled(lambda row, indices: V[row, indices] * (n / s))

    def known(self, dim: int) -> SideInfo:
        return {"parts": self.n, "copies": self.copies}

    def omega(self, dim: int) -> float:
        assert self.n is not None
        return self.n / self.copies - 1.0
