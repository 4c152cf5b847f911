import numpy as np

from mpi_compress.core.fields import AtLeastOne
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.penalties.base import Penalty, penalties


@penalties.register("group")
class Group(Penalty):
    """Group lasso: Yuan and Lin (2006); each group is `size` coordinates in a row, the last one what is left."""

    formula = "λ Σ_g √|g| ‖x_g‖"
    size: AtLeastOne = 10  # coordinates of a group

    def value(self, x: Vector) -> float:
        norms, roots = self._groups(x)
        return self.λ * float(np.sum(roots * norms))

    def prox(self, x: Vector, γ: float) -> Vector:
        norms, roots = self._groups(x)
        cut = γ * self.λ * roots
        kept = np.where(norms > cut, 1.0 - cut / np.where(norms > cut, norms, 1.0), 0.0)
        return x * np.repeat(kept, self.size)[: x.size]

    def _groups(self, x: Vector) -> tuple[Vector, Vector]:
        """‖x_g‖ and √|g| of every group."""
        starts = np.arange(0, x.size, self.size)
        return np.sqrt(np.add.reduceat(x * x, starts)), np.sqrt(np.diff(np.append(starts, x.size)))
