"""The contract of a metric, and what it may look at."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

from mpi_compress.core.registry import Part, Registry
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.datasets.store import DataSet
from mpi_compress.problem.held_out import HeldOut
from mpi_compress.problem.losses import Loss
from mpi_compress.problem.models import Model
from mpi_compress.problem.penalties import Penalty
from mpi_compress.problem.rows import Rows


@dataclass(frozen=True)
class ProblemView:
    """A run's problem as its metrics see it, at rank 0."""

    data: DataSet
    loss: Loss | Model
    mu: float
    penalty: Penalty | None
    x_star: Vector | None  # (d,), if it is known
    f_star: float  # NaN if it is not known
    test: DataSet | None = None  # the test set
    test_rows: int | None = None  # how many of its first rows are looked at; None: all

    @cached_property
    def rows(self) -> Rows:
        """All training rows, of all workers. They are read when they are first asked for, and stay in rank 0's memory."""
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

    @property
    def column(self) -> str:
        return self.name.replace("-", "_")

    @abstractmethod
    def value(self, x: Vector, problem: ProblemView) -> float:
        """The number at x (d,), which is finite. It must follow from x and the problem alone.

        Raises:
            ValueError: it has no value on this problem.
        """


metrics: Registry[Metric] = Registry("metric", Metric)
