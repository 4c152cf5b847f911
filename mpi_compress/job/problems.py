"""A run's problem from its tables: data, loss, partition, and the metrics of its points."""

from typing import Any

from mpi_compress.core.errors import UserError, checked_at
from mpi_compress.core.registry import checked, parameters
from mpi_compress.job.dotted import refuse_unknown
from mpi_compress.job.tables import LogTable, ObjectiveTable, WorkersTable
from mpi_compress.problem.datasets import generators
from mpi_compress.problem.datasets.formats import formats
from mpi_compress.problem.datasets.known import PUBLISHED
from mpi_compress.problem.datasets.table import DataTable
from mpi_compress.problem.losses import Loss, losses
from mpi_compress.problem.metrics import Metric, metrics
from mpi_compress.problem.models import Model, models
from mpi_compress.problem.partitions import Partition, partitions, sizes_of
from mpi_compress.results.columns import refuse_column


def data_table(table: dict[str, Any]) -> DataTable:
    """[data]: keys that belong to its generator, or to its format, are their parameters."""
    common = [k for k in parameters(DataTable) if k != "parameters"]
    kind, registry = ("generator", generators) if "generator" in table else ("format", formats)
    of_set = PUBLISHED.get(str(table.get("name")))
    name = table.get(kind, of_set.format if of_set and kind == "format" else None)
    if name is not None and not (isinstance(name, str) and registry.knows(name)):
        raise UserError(f"data.{kind}: {registry.lacks(name)}")
    own = [] if name is None else parameters(registry[name])
    refuse_unknown(table, [*common, *own], "data")
    values = {k: v for k, v in table.items() if k in own}
    if name is not None:
        registry.build({"name": name, **values}, "data")
    rest = {k: v for k, v in table.items() if k not in own}
    return checked(DataTable, {**rest, "parameters": values}, "data")


def loss_of(objective: ObjectiveTable, data: DataTable) -> Loss | Model:
    """The loss or the model; a name of the other kind is refused as such."""
    if objective.model is not None:
        if isinstance(objective.model, str) and objective.model in losses and objective.model not in models:
            raise UserError(f'objective.model: {objective.model} is a loss of a margin; write loss = "{objective.model}"')
        if data.positive is not None:
            raise UserError("data.positive: makes two classes of labels, and a model takes them as they are; leave it out")
        return models.build(objective.model, "objective.model")
    loss = "logistic" if objective.loss is None else objective.loss
    if isinstance(loss, str) and loss in models and loss not in losses:
        raise UserError(f'objective.loss: {loss} is a model; write model = "{loss}"')
    return losses.build(loss, "objective.loss")


def metrics_of(log: LogTable) -> list[Metric]:
    """The metrics of [log], of which no two have one column."""
    found = [metrics.build(spec, "log.metrics") for spec in log.metrics]
    for i, metric in enumerate(found):
        refuse_column(metric.column, [m.column for m in found[:i]])
    return found


def partition_of(workers: WorkersTable) -> Partition:
    """The partition, its parameters checked for so many workers."""
    part = partitions.build(workers.partition, "workers.partition")
    checked_at("workers.partition", sizes_of, part, workers.count)
    return part
