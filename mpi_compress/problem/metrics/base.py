"""The contract of a metric, and what it may look at."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np

from mpi_compress.core import arrays
from mpi_compress.core.errors import UserError, checked_at
from mpi_compress.core.registry import Part, Registry
from mpi_compress.kernels.vectors import are_equal
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.datasets.store import DataSet
from mpi_compress.problem.mean_loss import MeanLoss
from mpi_compress.problem.penalties import Penalty
from mpi_compress.problem.rows import Rows


class HeldOut(Rows):
    """The rows of a test set, held by one process, so their numbers do not depend on the layout.

    test_loss is the mean of ℓ, without the regulariser. If labels are classes, test_accuracy is the share of samples whose label is
    the class of the largest score or, for a margin, its sign, where a margin of 0 counts as −1.
    """

    _loss: Any
    _two: bool  # classes
    _seen: Any  # a point, its columns and scores; None: no point yet

    def __init__(self, rows: Rows, loss: MeanLoss):
        super().__init__(rows.matrix, rows.labels, rows.dim)
        two = loss.of_margin and bool(np.all(np.abs(rows.labels) == 1.0))
        vars(self).update(_loss=loss, _two=two, _seen=None)

    def columns(self, x: Vector) -> dict[str, float]:
        """The test columns of a row of the trace, at the point x (d,). What the last point gave is kept."""
        return dict(self._at(x)[1])

    def scores(self, x: Vector) -> Vector | None:
        """The scores of all rows at x (d,); None: the model has none."""
        return self._at(x)[2]

    def _at(self, x: Vector) -> tuple[Vector, dict[str, float], Vector | None]:
        if self._seen is None or not are_equal(self._seen[0], x):
            columns, scores = {"test_loss": self._loss.mean_loss(x, self)}, self._loss.scores(x, self)
            if self._two:
                columns["test_accuracy"] = float(np.mean((scores > 0) == (self.labels > 0)))
            elif scores is not None and self._loss.labels == "class":
                columns["test_accuracy"] = float(np.mean(np.argmax(scores, axis=1) == self.labels))
            vars(self)["_seen"] = x.copy(), columns, scores
        return self._seen


@dataclass(frozen=True)
class ProblemView:
    """A run's problem as its metrics see it, at rank 0."""

    data: DataSet
    loss: MeanLoss
    mu: float
    penalty: Penalty | None
    x_star: Vector | None  # (d,), if it is known
    f_star: float  # NaN if it is not known
    test: DataSet | None = None  # the test set
    test_rows: int | None = None  # how many of its first samples are looked at; None: all

    @cached_property
    def rows(self) -> Rows:
        """All training samples, of all workers. They are read when they are first asked for, and stay in rank 0's memory."""
        return self.data.read(0, self.data.n_samples)

    @cached_property
    def held_out(self) -> HeldOut | None:
        """The test set's rows, which no worker holds; None where there is none."""
        if self.test is None:
            return None
        n = self.test.n_samples
        return HeldOut(self.test.read(0, n if self.test_rows is None else min(n, self.test_rows)), self.loss)


@dataclass(frozen=True)
class Metric(Part, ABC):
    """A number of a point. It becomes a column of the trace in logged rounds, and takes no time on the clock."""

    rises: ClassVar[bool] = False  # True: it should rise, as an accuracy; False: it should fall

    @property
    def column(self) -> str:
        return self.name.replace("-", "_")

    @abstractmethod
    def value(self, x: Vector, problem: ProblemView) -> float:
        """The number at x (d,), which is finite. It must follow from x and the problem alone.

        Raises:
            ValueError: it has no value on this problem.
        """

    @final
    def number(self, x: Vector, problem: ProblemView) -> float:
        """The value as a float, NaN where x (d,) is not finite; UserError, with the metric's name, if it has no number there,
        or asks for held-out rows that there are not."""
        if not np.isfinite(x).all():
            return float("nan")
        where = f"log.metrics: '{self.name}'"
        try:
            value = checked_at(where, self.value, x.copy(), problem)
        except AttributeError as error:
            if problem.test or error.obj is not None or error.name not in {*dir(HeldOut), *Rows.__dataclass_fields__}:
                raise
            raise UserError(f'{where}: asks for held-out rows, and this job has no test set: [data] test = "…"') from error
        try:
            return arrays.number(value, "")
        except ValueError:
            raise UserError(f"{where}: {arrays.shown(value)} was given; it should be one real number") from None


metrics: Registry[Metric] = Registry("metric", Metric)
