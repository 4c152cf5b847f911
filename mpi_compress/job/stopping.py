"""[stop]: targets and budgets, `column = value` for any column that the run logs, and stops of one's own."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from functools import cache
from typing import Any

from mpi_compress.algorithms import Method
from mpi_compress.core.errors import UserError
from mpi_compress.core.expressions import Time
from mpi_compress.core.fields import converted
from mpi_compress.core.installed import broken
from mpi_compress.core.registry import checked, parameters
from mpi_compress.core.removed import refuse_key
from mpi_compress.core.sources import source_of
from mpi_compress.job.stops import stops
from mpi_compress.job.tables import LogTable, Stop
from mpi_compress.messages.conventions import conventions_of
from mpi_compress.messages.costs import CostModel
from mpi_compress.problem.datasets.table import DataTable
from mpi_compress.problem.metrics import Metric
from mpi_compress.results.columns import COLUMNS, column_of, known
from mpi_compress.results.targets import Target

_COLUMNS = [c.name for c in COLUMNS if (c.table in ("trace", "timing") or c.since == "result") and c.name != "round"]


@dataclass(frozen=True)
class Logged:
    """What decides which columns a run logs."""

    log: LogTable
    metrics: Sequence[Metric]
    data: DataTable
    cost: CostModel
    algorithm: Method

    def why_not(self, name: str) -> str:
        """Why the run does not log a column, "" if it does; its method's own columns are known in its first row alone."""
        since = column_of(name).since
        if since == "convention" and name not in {each.column for each in conventions_of(self.log.count).values()}:
            return "is a way of counting: [log] count names them"
        if since == "model" and self.cost.clock is None:
            return "is a clock's: a [cost] of links has one"
        if since == "theory" and not self.log.theory:
            return "is theory: [log] theory = true adds it"
        if name.startswith("test_") and self.data.test is None:
            return "needs a test set: [data] test = …"
        return ""


def stop_of(table: Mapping[str, Any], logged: Logged, at: str) -> Stop:
    """[stop] of the run that stands `at` a place: keys are columns, or names of stops of one's own with a table of parameters."""
    where, evaluate = f"{at}stop", logged.log.evaluate
    if evaluate is not None and "suboptimality" in table:
        raise UserError(f"{at}log.evaluate = {evaluate}: f at some samples has no suboptimality, which [stop] asks for")
    plain = {key: table[key] for key in parameters(Stop) if key in table}
    own = {key: value for key, value in table.items() if key not in (*plain, *_COLUMNS) and stops.knows(key)}
    levels = {key: value for key, value in table.items() if key not in (*plain, *own)}
    metrics, logs = [metric.column for metric in logged.metrics], bool(source_of(logged.algorithm))  # a user's logs any
    for key in levels:
        if key not in (*_COLUMNS, *metrics) and (known(key) or not logs):
            names = [*parameters(Stop), *_COLUMNS, *metrics, *stops]
            raise UserError("; ".join([str(refuse_key(where, key, names)), *broken.values()]))
        if why := logged.why_not(key):
            raise UserError(f"{where}.{key}: this run does not log it: it {why}")
    if not (levels or "rounds" in plain):
        raise UserError(f"{where}: rounds = … is needed, or another column and its value, such as suboptimality = 1e-6")
    for key, value in own.items():
        if not isinstance(value, Mapping):
            raise UserError(f"{where}.{key}: {value!r} was given; it should be a table of its parameters, or {{}}")
    rising = [metric.column for metric in logged.metrics if metric.rises]
    targets = []
    for key, level in converted(_levels(*levels), levels, where).items():
        if not (0 <= level < math.inf or (key in metrics and math.isfinite(level))):
            raise UserError(f"{where}: {key} = {level} must be 0 or more, and finite")
        targets.append(Target.of(key, level, rising))
    rules = tuple(stops.build({**value, "name": key}, f"{where}.{key}") for key, value in own.items())
    return checked(Stop, plain, where).bound_to(targets=tuple(targets), own=rules)


@cache
def _levels(*columns: str) -> type:
    """A table with these columns, each a number, or a time."""
    return make_dataclass("Levels", [(name, Time if column_of(name).unit == "s" else float) for name in columns])
