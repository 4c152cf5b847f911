"""Loss and accuracy on samples that no worker sees."""

import numpy as np

from mpi_compress.kernels import losses
from mpi_compress.kernels import rows as kernels
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.objective import Loss, Rows


class HeldOut:
    """A test set, held by one process; it is no worker's, so what it says does not depend on the layout.

    test_loss is the mean of ℓ, without the regulariser; where labels are classes, test_accuracy is the share of them that sign(a·x)
    tells right, a margin of 0 counting as −1.
    """

    def __init__(self, rows: Rows, loss: Loss):
        self._rows, self._loss = rows, loss
        self._margins = np.empty(len(rows))
        self._classes = bool(np.all(np.abs(rows.labels) == 1.0))

    def columns(self, x: Vector) -> dict[str, float]:
        """What a row of a trace says about the point x (d,)."""
        kernels.margins(self._rows.matrix, x, self._margins)
        value, accuracy = losses.mean_loss_and_accuracy(self._loss.code, self._rows.labels, self._margins)
        return {"test_loss": value, "test_accuracy": accuracy} if self._classes else {"test_loss": value}
