"""What a caller in Python adds to its runs: a look at every row, further columns of the trace, and an end of its own."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import CodeType
from typing import Any

import numpy as np

from mpi_compress.algorithms.contract import Method
from mpi_compress.core import arrays
from mpi_compress.core.errors import UserError, checked_at
from mpi_compress.core.plugins import source_of
from mpi_compress.job.runs import RunSpec
from mpi_compress.messages.kinds import Vector
from mpi_compress.problem.metrics import Metric, ProblemView
from mpi_compress.results.columns import refuse_column
from mpi_compress.results.writer import Row

_SIMPLE = (bool, int, float, str, bytes, type(None))


@dataclass
class Watch:
    """A caller's functions, which rank 0 calls in logged rounds, off the clock."""

    on_row: Callable[[dict[str, Any]], Any] | None = None  # takes the record: label, the trace's columns, seconds
    metrics: Mapping[str, Callable[[Vector], float]] = field(default_factory=dict)  # by column
    until: Callable[[dict[str, Any]], Any] | None = None  # takes the record; true: the run is complete
    error: BaseException | None = None  # that one of these raised

    def __post_init__(self) -> None:
        for name, function in (("on_row", self.on_row), ("until", self.until)):
            if function is not None and not callable(function):
                raise UserError(f"{name}: {function!r:.60} was given; it should be a function of a record")
        if not isinstance(self.metrics, Mapping):
            raise UserError(f"metrics: {self.metrics!r:.60} was given; it should be functions of x by the names of their columns")
        for column, metric in self.metrics.items():
            refuse_column(column, (), "metrics")
            if not callable(metric):
                raise UserError(f"metrics: {column} = {metric!r:.60} was given; it should be a function of x")

    def refuse_columns_of(self, spec: RunSpec, algorithm: Method) -> None:
        """UserError if a further column of a run has the name of another one of it."""
        for metric in spec.metrics:
            refuse_column(metric.column, algorithm.log.columns, f"{spec.where}log.metrics")
        for column in self.metrics:
            refuse_column(column, [*algorithm.log.columns, *(m.column for m in spec.metrics)], f"{spec.where}metrics")

    def columns_of(self, spec: RunSpec) -> list[str]:
        """The further columns of a run's trace."""
        return [*(m.column for m in spec.metrics), *self.metrics]

    def values(self, x: Vector) -> dict[str, float]:
        """The columns of `metrics` at x (d,); UserError if one is no number."""

        def of(column: str) -> float:
            return _value(f"metrics: '{column}'", lambda: self._call(self.metrics[column], x.copy()), x)

        return {column: of(column) for column in self.metrics}

    def see(self, label: str, row: Row) -> bool:
        """Pass a row on; True if the run is to end."""
        if self.on_row is None and self.until is None:
            return False
        plain = {"label": label, **row.trace, "seconds": row.timing["seconds"]}
        plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in plain.items()}
        if self.on_row is not None:
            self._call(self.on_row, dict(plain))
        return self.until is not None and bool(self._call(self.until, plain))

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except BaseException as error:
            self.error = error
            raise

    def marks(self, spec: RunSpec) -> dict[str, str]:
        """What distinguishes the further columns of a run from others of the same names."""
        own = {m.column: _hash(f"{m!r} {source_of(m)}") for m in spec.metrics}
        return own | {name: mark_of(f) for name, f in self.metrics.items()}

    def is_served_by(self, attrs: Mapping[str, Any], spec: RunSpec) -> bool:
        """True if the result of these attributes has these columns, and no other `until` has ended it."""
        kept = json.loads(attrs.get("metrics", "{}"))
        has_all = all(kept.get(column) == mark for column, mark in self.marks(spec).items())
        return has_all and attrs.get("until", "") in ("", mark_of(self.until))


def values_of(metrics: list[Metric], problem: ProblemView, x: Vector) -> dict[str, float]:
    """The columns of a job's metrics at x (d,); UserError, with the metric's name, if one has no number there."""

    def of(metric: Metric) -> float:
        where = f"log.metrics: '{metric.name}'"
        return checked_at(where, lambda: _value(where, lambda: metric.value(x.copy(), problem), x))

    return {metric.column: of(metric) for metric in metrics}


def _value(where: str, compute: Callable[[], Any], x: Vector) -> float:
    """A number that is computed; NaN if x is not finite."""
    if not np.isfinite(x).all():
        return float("nan")
    value = compute()
    try:
        return arrays.number(value, "")
    except ValueError:
        raise UserError(f"{where}: {arrays.shown(value)} was given; it should be one real number") from None


def mark_of(function: Callable[..., Any] | None) -> str:
    """A hash of a function's code, and of the numbers and texts that it keeps; what else it uses is not seen. "" for None."""
    if function is None:
        return ""
    if isinstance(function, partial):
        bound = (*enumerate(function.args), *sorted(function.keywords.items()))
        given = [f"{name} = {value!r}" for name, value in bound if isinstance(value, _SIMPLE)]
        return _hash(json.dumps([mark_of(function.func), *given]))
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    of_keywords = (getattr(function, "__kwdefaults__", None) or {}).values()
    kept = [*(getattr(function, "__defaults__", None) or ()), *of_keywords, *_closed_over(function)]
    texts = [*_texts(code), *(repr(value) for value in kept if isinstance(value, _SIMPLE))]
    named = "" if code else getattr(function, "__qualname__", type(function).__qualname__)
    return _hash(json.dumps([named, *texts]))


def _closed_over(function: Any) -> list[Any]:
    try:
        return [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    except ValueError:  # a name that has no value yet
        return []


def _texts(code: CodeType | None) -> list[str]:
    """What a function's code consists of, without the places where it stands."""
    if code is None:
        return []
    found = [code.co_code.hex(), *code.co_names]
    for const in code.co_consts:
        if isinstance(const, CodeType):
            found += _texts(const)
        else:
            found.append(repr(sorted(map(repr, const)) if isinstance(const, frozenset) else const))
    return found


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
