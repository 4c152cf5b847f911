"""Loss and accuracy on samples that no worker has."""

import numpy as np

from mpi_compress.kernels import losses as kernels
from mpi_compress.kernels.rows import margins
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.losses import Loss
from mpi_compress.problem.models import Model
from mpi_compress.problem.own_parts import checked_loss, checked_model
from mpi_compress.problem.rows import Rows


class HeldOut:
    """A test set, held by one process, so its numbers do not depend on the layout.

    test_loss is the mean of ℓ, without the regulariser. If labels are classes, test_accuracy is the share of samples whose label is
    the class of the largest score or, for a margin, its sign, where a margin of 0 counts as −1.
    """

    def __init__(self, rows: Rows, loss: Loss | Model):
        self._rows = rows
        self._loss = checked_model(loss) if isinstance(loss, Model) else checked_loss(loss)
        self._margins = np.empty(len(rows))
        self._classes = bool(np.all(np.abs(rows.labels) == 1.0))

    def columns(self, x: Vector) -> dict[str, float]:
        """The test columns of a row of the trace, at the point x (d,)."""
        if isinstance(self._loss, Model):
            return self._of_model(self._loss, x)
        margins(self._rows.matrix, x, self._margins)
        if self._loss.kernel is None:
            value = float(np.mean(self._loss.value_and_slope(self._rows.labels, self._margins)[0]))
            accuracy = float(np.mean((self._margins > 0) == (self._rows.labels > 0)))
        else:
            value, accuracy = kernels.mean_loss_and_accuracy(self._loss.kernel, self._rows.labels, self._margins)
        return {"test_loss": value, "test_accuracy": accuracy} if self._classes else {"test_loss": value}

    def _of_model(self, model: Model, x: Vector) -> dict[str, float]:
        found = {"test_loss": model.loss_and_gradient(x, self._rows, None)[0]}
        scores = model.scores(x, self._rows) if model.labels == "class" else None
        return found if scores is None else {**found, "test_accuracy": accuracy(scores, self._rows.labels)}


def accuracy(scores: Vector, labels: Vector) -> float:
    """The share of rows whose label (N,) is the class of the largest score (N, classes)."""
    return float(np.mean(np.argmax(scores, axis=1) == labels))
