"""[stop]: targets and budgets, `column = value` for any column that the run logs, and stops of one's own."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from functools import cache

from mpi_compress.algorithms import Method
from mpi_compress.core.errors import UserError
from mpi_compress.core.expressions import Time
from mpi_compress.core.fields import converted
from mpi_compress.core.installed import broken
from mpi_compress.core.registry import checked, parameters
from mpi_compress.core.removed import refuse_key
from mpi_compress.core.sources import source_of
from mpi_compress.job.stops import stops
from mpi_compress.job.tables import LogTable, Stop, Tables
from mpi_compress.job.tuning import TuneTable
from mpi_compress.messages.conventions import conventions_of
from mpi_compress.messages.costs import CostModel
from mpi_compress.problem.computing import Computing
from mpi_compress.problem.datasets.table import DataTable
from mpi_compress.problem.metrics import Metric
from mpi_compress.results.columns import COLUMNS, OF_CLOCK, column_of, known
from mpi_compress.results.targets import Target

_COLUMNS = [c.name for c in COLUMNS if (c.table in ("trace", "timing") or c.since == "result") and c.name != "round"]


@dataclass(frozen=True)
class Logged:
    """What decides which columns a run logs."""

    log: LogTable
    metrics: Sequence[Metric]
    data: DataTable
    cost: CostModel
    computing: Computing | None
    algorithm: Method

    def refuse(self, name: str, key: str) -> None:
        """UserError, by the key that names it, for a column that the run does not log; its method's own columns are known in its
        first row alone."""
        if why := self.why_not(name):
            raise UserError(f"{key}: {why}")

    def why_not(self, name: str) -> str:
        """Why the run does not log a column, or one from which that follows; "" if it does."""
        for column in (name, *column_of(name).of):
            if isinstance(column, str) and (why := self._why_not(column)):
                return f"this run does not log '{name}': {column} {why}"
        return ""

    @property
    def columns(self) -> list[str]:
        """What the run may log, but for a user's method."""
        return [*_COLUMNS, *(metric.column for metric in self.metrics)]

    @property
    def logs_any(self) -> bool:
        """True if its method is a user's, and has a log of its own."""
        return type(self.algorithm).log is not Method.log and bool(source_of(self.algorithm))

    def _why_not(self, name: str) -> str:
        """Why the run does not log a column; "" if it does."""
        since = column_of(name).since
        if since == "convention" and name not in {each.column for each in conventions_of(self.log.count).values()}:
            return "is a way of counting: [log] count names them"
        if since in OF_CLOCK and self.cost.clock is None and self.computing is None:
            return "is a clock's: a [cost] of links has one, and [time] compute"
        if since == "theory" and not self.log.theory:
            return "is theory: [log] theory = true adds it"
        if name == "suboptimality" and self.log.evaluate is not None:
            return f"is not known of f at some samples: leave log.evaluate = {self.log.evaluate} out"
        if name.startswith("test_") and self.data.test is None:
            return "needs a test set: [data] test = …"
        return ""

    def refuse_unknown(self, names: Iterable[str], where: str, others: Collection[str] = ()) -> None:
        """UserError for names that no column of the run has; `others` would do, too."""
        for name in names:
            if name not in self.columns and (known(name) or not self.logs_any):
                raise UserError("; ".join([str(refuse_key(where, name, [*others, *self.columns])), *broken.values()]))


def check_tune(tune: TuneTable, logged: Logged) -> None:
    """UserError if trials do not log what [tune] compares them by."""
    logged.refuse_unknown(tune.to, "tune.to")
    for key, column in (("to", tune.target().column), ("by", tune.by)):
        logged.refuse(column, f"tune.{key}")


def stop_of(table: Tables, logged: Logged) -> Stop:
    """[stop] of a run: keys are columns, or names of stops of one's own with a table of parameters."""
    plain = {key: table[key] for key in parameters(Stop) if key in table}
    own = {key: value for key, value in table.items() if key not in (*plain, *_COLUMNS) and stops.knows(key)}
    levels = {key: value for key, value in table.items() if key not in (*plain, *own)}
    logged.refuse_unknown(levels, "stop", [*parameters(Stop), *stops])
    for key in levels:
        logged.refuse(key, f"stop.{key}")
    if not (levels or "rounds" in plain):
        raise UserError("stop: rounds = … is needed, or another column and its value, such as suboptimality = 1e-6")
    rules = []
    for key, value in own.items():
        if not isinstance(value, Mapping):
            raise UserError(f"stop.{key}: {value!r} was given; it should be a table of its parameters, or {{}}")
        rules.append(stops.build({**value, "name": key}, f"stop.{key}"))
    metrics = {metric.column: metric.rises for metric in logged.metrics}
    targets, rising = [], [column for column, rises in metrics.items() if rises]
    for key, level in converted(_levels(*levels), levels, "stop").items():
        if not (0 <= level < math.inf or (key in metrics and math.isfinite(level))):
            raise UserError(f"stop: {key} = {level} must be 0 or more, and finite")
        targets.append(Target.of(key, level, rising))
    return checked(Stop, plain, "stop").bound_to(targets=tuple(targets), own=tuple(rules))


@cache
def _levels(*columns: str) -> type:
    """A table with these columns, each a number, or a time."""
    return make_dataclass("Levels", [(name, Time if column_of(name).unit == "s" else float) for name in columns])
