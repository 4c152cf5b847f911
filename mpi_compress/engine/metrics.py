"""The columns that follow from a point alone: ‖x − x*‖, those of the test set, and the metrics of a job."""

from collections.abc import Callable

import numpy as np

from mpi_compress.core import arrays
from mpi_compress.core.errors import UserError, checked_at, placed
from mpi_compress.kernels.vectors import norm
from mpi_compress.messages.kinds import Vector
from mpi_compress.preparing.runs import Prepared
from mpi_compress.problem.metrics import Metric, ProblemView
from mpi_compress.results.columns import refuse_column


def columns_of(p: Prepared) -> Callable[[Vector], dict[str, float]]:
    """The columns of a run at a point x (d,): ‖x − x*‖ if x* is known, the test set's if there is one, and metrics."""
    view = view_of(p)
    x_star, held_out = view.x_star, view.held_out

    def columns(x: Vector) -> dict[str, float]:
        distance = {} if x_star is None else {"distance": norm(x - x_star)}
        held = held_out.columns(x) if held_out else {}
        return {**distance, **held, **{metric.column: _value(metric, view, x) for metric in p.spec.metrics}}

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
            refuse_column(metric.column, p.algorithm.log.columns, "log.metrics")
            _value(metric, view_of(p), p.x0)


def _value(metric: Metric, problem: ProblemView, x: Vector) -> float:
    """A metric at x (d,), NaN where that is not finite; UserError, with the metric's name, if it has no number there."""
    if not np.isfinite(x).all():
        return float("nan")
    where = f"log.metrics: '{metric.name}'"
    value = checked_at(where, lambda: metric.value(x.copy(), problem))
    try:
        return arrays.number(value, "")
    except ValueError:
        raise UserError(f"{where}: {arrays.shown(value)} was given; it should be one real number") from None
