"""Loss and accuracy on samples that no worker has."""

import numpy as np

from mpi_compress.kernels import losses as kernels
from mpi_compress.kernels.rows import margins
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.losses import Loss
from mpi_compress.problem.rows import Rows


class HeldOut:
    """A test set, held by one process, so its numbers do not depend on the layout.

    test_loss is the mean of ℓ, without the regulariser. If labels are classes, test_accuracy is the share of samples whose label is
    sign(a·x), where a margin of 0 counts as −1.
    """

    def __init__(self, rows: Rows, loss: Loss):
        self._rows, self._loss = rows, loss
        self._margins = np.empty(len(rows))
        self._classes = bool(np.all(np.abs(rows.labels) == 1.0))

    def columns(self, x: Vector) -> dict[str, float]:
        """The test columns of a row of the trace, at the point x (d,)."""
        margins(self._rows.matrix, x, self._margins)
        value, accuracy = kernels.mean_loss_and_accuracy(self._loss.kernel, self._rows.labels, self._margins)
        return {"test_loss": value, "test_accuracy": accuracy} if self._classes else {"test_loss": value}
