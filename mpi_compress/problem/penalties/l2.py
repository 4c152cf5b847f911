from mpi_compress.core.registry import fact
from mpi_compress.kernels.vectors import squared_norm
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.penalties.base import Penalty, penalties


@penalties.register("l2")
class L2(Penalty):
    """Ridge: the same as mu = weight."""

    formula = "(λ/2) ‖x‖²"
    curvature = 1.0

    @fact
    def mu(self) -> float:
        return self.λ

    def value(self, x: Vector) -> float:
        return 0.5 * self.λ * squared_norm(x)

    def gradient(self, x: Vector) -> Vector:
        return self.λ * x
