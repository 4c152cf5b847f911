"""The parts of a run's problem from its tables: the loss or model, the split, the metrics, the stops of one's own."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from mpi_compress.core.errors import UserError, checked_at, nearest
from mpi_compress.core.registry import checked, parameters
from mpi_compress.job.stops import stops
from mpi_compress.job.tables import LogTable, ObjectiveTable, Stop, WorkersTable
from mpi_compress.problem.clipping import RowClipping, refuse_rows_together
from mpi_compress.problem.datasets.table import DataTable
from mpi_compress.problem.losses import Loss, losses
from mpi_compress.problem.metrics import Metric, metrics
from mpi_compress.problem.models import Model, models
from mpi_compress.problem.partitions import Partition, partitions
from mpi_compress.results.columns import refuse_column


def loss_of(objective: ObjectiveTable, data: DataTable, at: str) -> Loss | Model:
    """The loss or the model; a name of the other kind is refused as such."""
    if objective.model is not None:
        if isinstance(objective.model, str) and objective.model in losses and objective.model not in models:
            raise UserError(f'{at}objective.model: {objective.model} is a loss of a margin; write loss = "{objective.model}"')
        if data.positive is not None:
            raise UserError(f"{at}data.positive: makes two classes of labels, and a model takes them as they are; leave it out")
        return models.build(objective.model, f"{at}objective.model")
    loss = "logistic" if objective.loss is None else objective.loss
    if isinstance(loss, str) and loss in models and loss not in losses:
        raise UserError(f'{at}objective.loss: {loss} is a model; write model = "{loss}"')
    return losses.build(loss, f"{at}objective.loss")


def clipping_of(objective: ObjectiveTable, loss: Loss | Model, where: str) -> RowClipping | None:
    """How the gradients of rows are clipped, None: they are not; refused where rows have none of their own."""
    if objective.clip_rows is None:
        return None
    clipping = checked(RowClipping, objective.clip_rows, where)
    checked_at(where, partial(refuse_rows_together, loss))
    return clipping


def metrics_of(log: LogTable, where: str) -> list[Metric]:
    """The metrics of [log], of which no two have one column."""
    found = [metrics.build(spec, where) for spec in log.metrics]
    for i, metric in enumerate(found):
        refuse_column(metric.column, [m.column for m in found[:i]], where)
    return found


def partition_of(workers: WorkersTable, where: str) -> Partition:
    """The partition, its parameters checked for so many workers."""
    part = partitions.build(workers.partition, where)
    try:
        part.check(workers.count)
    except ValueError as error:
        raise UserError(f"{where}: {error}") from None
    return part


def stop_of(table: Mapping[str, Any], where: str) -> Stop:
    """[stop], whose keys may be names of stops of one's own, each with the table of its parameters."""
    known = parameters(Stop)
    own = {key: value for key, value in table.items() if key in stops and key not in known}
    for key in table:
        if key not in (*known, *own):
            raise UserError(f"{where}: {nearest(key, [*known, *stops], 'key')}")
    for key, value in own.items():
        if not isinstance(value, Mapping):
            raise UserError(f"{where}.{key}: {value!r} was given; it should be a table of its parameters, or {{}}")
    rules = tuple(stops.build({**value, "name": key}, f"{where}.{key}") for key, value in own.items())
    return checked(Stop, {key: value for key, value in table.items() if key not in own}, where).with_own(rules)
