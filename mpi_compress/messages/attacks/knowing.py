"""Attacks of workers that know all honest messages."""

from statistics import NormalDist

from mpi_compress.core.fields import Positive
from mpi_compress.messages.attacks.base import Attack, Vectors, attacks
from mpi_compress.messages.kinds import Vector


@attacks.register("alie")
class ALIE(Attack):
    """µ − zσ, µ and σ the mean and the standard deviation of each coordinate of the honest vectors: "a little is enough"."""

    z: float | None = None  # z; left out: Φ⁻¹((n − f − s)/(n − f)), s = ⌊n/2 + 1⌋ − f, up to which most would take it for honest
    paper = "Baruch, Baruch, Goldberg (NeurIPS 2019), Algorithm 3; not checked against the paper"
    knows_all = True

    def share(self, n: int, f: int) -> float:
        """(n − f − s)/(n − f)."""
        return (n - f - (n // 2 + 1 - f)) / (n - f)

    def check(self, n: int, f: int) -> None:
        if self.z is None and not 0 < self.share(n, f) < 1:
            raise ValueError(f"alie has no z of its own for {f} of {n} workers: give z")

    def knowing(self, honest: Vectors, f: int) -> Vector:
        z = NormalDist().inv_cdf(self.share(len(honest) + f, f)) if self.z is None else self.z
        return honest.mean(axis=0) - z * honest.std(axis=0)


@attacks.register("ipm")
class IPM(Attack):
    """−εµ, µ the mean of the honest vectors: inner product manipulation."""

    epsilon: Positive = 0.1  # ε
    paper = "Xie, Koyejo, Gupta (UAI 2019); not checked against the paper"
    knows_all = True

    def knowing(self, honest: Vectors, f: int) -> Vector:
        return -self.epsilon * honest.mean(axis=0)
