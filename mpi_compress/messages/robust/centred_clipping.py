import numpy as np

from mpi_compress.core.fields import AtLeastOne, Positive
from mpi_compress.messages.kinds import Vector
from mpi_compress.messages.robust.base import RobustMean, Vectors, robust_means


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
