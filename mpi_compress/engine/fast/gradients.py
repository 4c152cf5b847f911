"""Full gradients of all workers of a process by one kernel call: on small shards a call takes a good part of the time."""

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.clock import now
from mpi_compress.kernels.shards import losses_and_gradients
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.data_terms import FusedMargins
from mpi_compress.problem.objective import Evaluated, Objective
from mpi_compress.problem.points import Point
from mpi_compress.problem.rows import Rows

_CACHED = 2**20  # bytes
_SHORT = 4096  # coordinates of a vector that costs less to read again than a call


def pays(m: int, dim: int) -> bool:
    """True if one call for m vectors (dim,) is faster than m calls: they stay cached until they are read, or are short."""
    return 8 * m * dim <= _CACHED or dim <= _SHORT


class GradientsTogether:
    """Evaluates neighbouring shards by one call: to the last bit as one by one, and counted as if it had been one by one. `whole`
    are the rows that those of the `objectives`, of all workers hosted here, were cut from, one shard after the other."""

    def __init__(self, objectives: Sequence[Objective], whole: Rows):
        first = objectives[0]
        self.objectives, self._whole, self._matrix = objectives, whole, whole.compact()
        self._cuts = np.cumsum([first.rows.start, *(len(f.rows) for f in objectives)], dtype=np.uint64)
        self._values, self._gradients = np.zeros(len(objectives)), np.zeros((len(objectives), first.dim))
        for f, gradient in zip(objectives, self._gradients, strict=True):
            f.last.buffer, f.neighbours = gradient, self
            f.drop()

    @classmethod
    def of(cls, objectives: Iterable[Objective]) -> "GradientsTogether | None":
        """None where their shards do not lie one after the other, where rows are clipped, or where one call would not pay."""
        fs = list(objectives)
        whole = fs[0].rows.whole if len(fs) > 1 and isinstance(fs[0].term, FusedMargins) else None
        if whole is None or fs[0].clipping is not None or not pays(len(fs), whole.dim):
            return None
        together = all(b.rows.whole is whole and b.rows.start == a.rows.start + len(a.rows) for a, b in itertools.pairwise(fs))
        return cls(fs, whole) if together else None

    def evaluate(self, point: Point, charged: bool) -> bool:
        """Let all objectives keep their values and gradients at a point. Where one of them was not asked for what it was given at
        the last point, workers do not look at the same points, and each evaluates alone from now on."""
        if any(f.has_unused for f in self.objectives):
            for f in self.objectives:
                f.neighbours = None
            return False
        seconds = self._compute(point.x)
        for f, value in zip(self.objectives, self._values.tolist(), strict=True):
            f.keep(Evaluated(point, value, seconds, charged))
        return True

    def gradients(self, x: Vector) -> NDArray[np.float64]:
        """What `gradient(x)` of each returns, as rows (m, d)."""
        if self.objectives[0].has(x):
            for f in self.objectives:
                f.gradient(x)
        else:
            seconds = self._compute(x)
            for f in self.objectives:
                f.charge(seconds)
        return self._gradients

    def _compute(self, x: Vector) -> float:
        """Values and gradients at x. Returns the seconds that each took."""
        f, whole, start = self.objectives[0], self._whole, now()
        for each in self.objectives:
            each.drop()
        losses_and_gradients(
            self._matrix, whole.labels, self._cuts, f.loss.kernel, f.weight, f.mu, x, self._values, self._gradients
        )
        if f.penalty is not None:
            self._values += f.penalty.value(x)
            self._gradients += f.penalty.gradient(x)
        return (now() - start) / len(self.objectives)
