"""Robust means of n vectors."""

from functools import cached_property
from typing import Any, Self

import numpy as np

from mpi_compress.core.fields import AtLeastOne, Positive
from mpi_compress.messages.kinds import Vector
from mpi_compress.messages.robust.base import OfByzantine, RobustMean, Vectors, robust_means


@robust_means.register("median")
class Median(RobustMean):
    """The coordinate median: of each coordinate the middle one of the n values, or the mean of the two in the middle."""

    paper = "Yin, Chen, Ramchandran, Bartlett (ICML 2018), option I; not checked against the paper"

    def of(self, vs: Vectors) -> Vector:
        return np.median(vs, axis=0)


@robust_means.register("trimmed-mean")
class TrimmedMean(OfByzantine):
    """The coordinate trimmed mean: of each coordinate the mean of the n values without the f least and the f largest."""

    count: int | None = None  # f, values dropped at each end; left out: as many as [workers] calls byzantine
    paper = "Yin, Chen, Ramchandran, Bartlett (ICML 2018), option II; not checked against the paper"

    def of(self, vs: Vectors) -> Vector:
        f = self.count or 0
        return np.sort(vs, axis=0)[f : len(vs) - f].mean(axis=0)


@robust_means.register("centred-clipping")
class CentredClipping(RobustMean):
    """c ← c + (1/n) Σ min(1, τ/‖v_i − c‖)(v_i − c), some rounds of it, from the coordinate median on.

    The paper begins with the mean of the round before; the median needs no memory. No v_i moves c by more than τ/n in a round.
    """

    tau: Positive | None = None  # τ, the radius of clipping; left out: the median of the ‖v_i − c‖, of each round
    rounds: AtLeastOne = 3  # how often c is moved
    paper = "Karimireddy, He, Jaggi (ICML 2021); not checked against the paper"

    def of(self, vs: Vectors) -> Vector:
        c = np.median(vs, axis=0)
        for _ in range(self.rounds):
            apart = np.linalg.norm(vs - c, axis=1)
            τ = np.median(apart) if self.tau is None else self.tau
            shares = np.minimum(1.0, np.divide(τ, apart, out=np.ones_like(apart), where=apart > 0))
            c = c + (shares[:, None] * (vs - c)).mean(axis=0)
        return c


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
