import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from mpi_compress.algorithms.contract import Setting, algorithms
from mpi_compress.algorithms.estimators.three_pc import ThreePC
from mpi_compress.core.expressions import Expression
from mpi_compress.core.streams import Round
from mpi_compress.messages.compressors.base import Count, count_of
from mpi_compress.messages.kinds import Vector
from mpi_compress.messages.link import Message


@algorithms.register("adacgd")
@dataclass(frozen=True)
class AdaCGD(ThreePC):
    """Adaptive compressed gradient descent: Makarenko, Gasanov, Islamov, Sadiev, Richtárik (2022), as a three-point compressor.

    worker sends     nothing where ‖D‖² ≤ τ, with D = ∇f_i(x) − g_i and τ = ζ‖∇f_i(x) − y_i‖²;
                     else c_i ← C_j(D) with the first j = 1, …, m that has ‖D − C_j(D)‖² ≤ τ, or with j = m

    and the rest as in 3pc. C_j is top-k with the j-th of `levels`, the coarsest first. The default step is that of 3pc for the δ of
    C_m, the finest; this was not checked against the paper. One level and ζ = 0 are EF21.
    """

    paper = "AdaCGD, Algorithm 1"
    sets_compressor = True
    zeta: Expression = 1.0  # ζ, the trigger: the larger it is, the shorter messages are, and the more workers are silent
    levels: list[Count] | None = None  # increasing numbers of coordinates, or shares of d such as "1%"; left out: 1, 2, 4, …, d

    def within(self, setting: Setting) -> Self:
        if setting.up.compressor.name != "top-k":
            raise ValueError(f"adacgd chooses the k of top-k, and up.compressor = {setting.up.compressor.name} was given")
        finest = setting.up.at(k=self.counts_of(setting.dim)[-1])
        return super().within(replace(setting, up=finest))

    def counts_of(self, d: int) -> Sequence[int]:
        """The k of C_1, …, C_m for vectors of d coordinates."""
        if self.levels is None:
            return [*itertools.takewhile(lambda k: k < d, (2**j for j in itertools.count())), d]
        return [count_of(level, d) for level in self.levels]

    @cached_property
    def counts(self) -> Sequence[int]:
        """The k of C_1, …, C_m."""
        return self.counts_of(self.setting.dim)

    def check(self) -> None:
        super().check()
        if any(a >= b for a, b in itertools.pairwise(self.counts)):
            raise ValueError(f"levels = {self.levels} must increase, the coarsest first")

    def pack(self, D: Vector, tolerance: float, t: Round) -> Message:
        lost = np.concatenate([[0.0], np.cumsum(np.sort(D * D))])[::-1]  # (d + 1,) ‖D − C(D)‖² of top-k with k = 0, …, d
        k = next((k for k in self.counts if lost[k] <= tolerance), self.counts[-1])
        return self.up.at(k=k).pack(D, t)
