"""What workers report of a point, added up in worker order.

A report is a list of arrays: how many coordinates of the gradient are listed, or −1; numbers; the gradient (d,), or those
coordinates and their values; the algorithm's vector, which may be empty. From another rank it arrives as one array, joined.
"""

from collections.abc import Sequence

import numpy as np

from mpi_compress.kernels.vectors import scatter_add
from mpi_compress.messages.kinds import Indices, Vector

_WHOLE = np.array([-1.0])


def report(numbers: Vector, gradient: Vector, listed: Indices | None, vector: Vector | None) -> list[Vector]:
    """A worker's report.

    Args:
        listed: increasing coordinates beyond which the gradient (d,) is 0; None: it is reported as a whole.
        vector: the algorithm's, if it has one.
    """
    head, of_gradient = (_WHOLE, [gradient]) if listed is None else (np.array([float(listed.size)]), [listed, gradient[listed]])
    return [head, numbers, *of_gradient, np.empty(0) if vector is None else vector]


class Tally:
    """Folds reports, in worker order: the largest of their first numbers, the sums of the others.

    Args:
        dim: d.
        numbers: how many there are.
        largest: the first numbers, of which the largest over workers is wanted.
        kept: numbers behind them that are kept for each worker, too.
    """

    def __init__(self, dim: int, numbers: int, largest: int, kept: int):
        self._n, self._largest, self._place = numbers, largest, slice(largest, largest + kept)
        self.numbers: Vector = np.empty(0)
        self.gradient: Vector = np.zeros(dim)
        self.vector: Vector = np.empty(0)
        self.kept: list[Vector] = []

    def add(self, report: Sequence[Vector] | Vector) -> None:
        """Take the next worker's report."""
        _, numbers, *gradient, vector = self._parted(report) if isinstance(report, np.ndarray) else report
        if len(gradient) == 1:
            self.gradient += gradient[0]
        else:
            scatter_add(gradient[0].astype(np.uint32, copy=False), gradient[1], 1.0, self.gradient)
        n = self._largest
        if not self.kept:
            self.numbers, self.vector = numbers.copy(), vector.copy()
        else:
            np.maximum(self.numbers[:n], numbers[:n], out=self.numbers[:n])
            self.numbers[n:] += numbers[n:]
            self.vector += vector
        self.kept.append(numbers[self._place].copy())

    def _parted(self, joined: Vector) -> list[Vector]:
        """The list that was joined."""
        listed, start = int(joined[0]), 1 + self._n
        cuts = [1, start, start + self.gradient.size] if listed < 0 else [1, start, start + listed, start + 2 * listed]
        return np.split(joined, cuts)
