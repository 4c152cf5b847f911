from mpi_compress.core.fields import Positive
from mpi_compress.messages.attacks.base import Attack, Vectors, attacks
from mpi_compress.messages.kinds import Vector


@attacks.register("ipm")
class IPM(Attack):
    """−εµ, µ the mean of the honest vectors: inner product manipulation."""

    epsilon: Positive = 0.1  # ε
    paper = "Xie, Koyejo, Gupta (UAI 2019); not checked against the paper"
    knows_all = True

    def knowing(self, honest: Vectors, f: int) -> Vector:
        return -self.epsilon * honest.mean(axis=0)
