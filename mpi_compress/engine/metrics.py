"""The columns that follow from a point alone: ‖x − x*‖, those of the test set, and the metrics of a job."""

import math
from collections.abc import Callable

from mpi_compress.core.errors import placed
from mpi_compress.core.progress import print_once
from mpi_compress.kernels.vectors import norm
from mpi_compress.messages.kinds import Vector
from mpi_compress.preparing.runs import Prepared
from mpi_compress.problem.metrics import ProblemView
from mpi_compress.results.columns import refuse_column


def columns_of(p: Prepared) -> Callable[[Vector], dict[str, float]]:
    """The columns of a run at a point x (d,): ‖x − x*‖ if x* is known, the test set's if there is one, and metrics."""
    view = view_of(p)
    x_star, held_out = view.x_star, view.held_out

    def columns(x: Vector) -> dict[str, float]:
        distance = {} if x_star is None else {"distance": norm(x - x_star)}
        held = held_out.columns(x) if held_out else {}
        return {**distance, **held, **{metric.column: metric.number(x, view) for metric in p.spec.metrics}}

    return columns


def view_of(p: Prepared) -> ProblemView:
    """A run's problem as metrics see it."""
    of = p.problem
    return ProblemView(of.data, of.loss, of.mu, of.penalty, of.x_star, of.f_star, of.test, p.spec.data.test_rows)


def try_metrics(p: Prepared) -> None:
    """Evaluate a job's metrics at x0; UserError if one has no number there, or the name of another column. At rank 0, before
    anything runs."""
    with placed(p.spec.where):
        for metric in p.spec.metrics:
            refuse_column(metric.column, p.algorithm.log.columns)
            if math.isnan(metric.number(p.x0, view_of(p))):
                print_once(f"{p.spec.where}log.metrics: '{metric.name}' is NaN at x0")
