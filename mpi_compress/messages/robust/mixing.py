from functools import cached_property
from typing import Any, Self

import numpy as np

from mpi_compress.messages.kinds import Vector
from mpi_compress.messages.robust.base import OfByzantine, RobustMean, Vectors, robust_means


@robust_means.register("nearest-neighbour-mixing")
class NearestNeighbourMixing(OfByzantine):
    """Each v_i becomes the mean of the n − f vectors that are nearest to it, itself among them; then any robust mean of these.

    Of vectors that are equally far the first ones are taken.
    """

    then: str | dict[str, Any] = "median"  # the robust mean of the mixed vectors
    count: int | None = None  # f, vectors left out of each mean; left out: as many as [workers] calls byzantine
    paper = "Allouah, Farhadkhani, Guerraoui, Gupta, Pinot, Stephan (AISTATS 2023); not checked against the paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.after  # noqa: B018 - refuses what is none

    @cached_property
    def after(self) -> RobustMean:
        return robust_means.build(self.then, "then")

    def among(self, n: int, f: int | None) -> Self:
        known = super().among(n, f)
        return known.bound_to(after=self.after.among(n, known.count))

    def of(self, vs: Vectors) -> Vector:
        kept = len(vs) - (self.count or 0)
        nearest = [np.sort(np.argsort(np.linalg.norm(vs - v, axis=1), kind="stable")[:kept]) for v in vs]
        return self.after.of(np.array([vs[of].mean(axis=0) for of in nearest]))
