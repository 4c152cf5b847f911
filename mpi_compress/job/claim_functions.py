"""What a claim can ask of a run: each function, how a claim writes it, what it says, and how a result answers.

Any other name is a column's: `cost_up('GD')` is its last entry, `cost_up('GD', loss=0.4)` that of the first record with loss ≤ 0.4.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.expressions import evaluate
from mpi_compress.results.reader import Run
from mpi_compress.results.targets import entry_at, rises
from mpi_compress.results.tuning import sizes


class Missing(Exception):
    """The run of a label, or its rows in a window, which a claim needs, are not there."""

    def __init__(self, label: str, what: str):
        super().__init__(f"'{label}' has no {what}")
        self.label, self.what = label, what


class Unknown(Exception):
    """A column that a claim needs is not there, or has no number in any row: says why."""


def tuned_between(run: Run) -> tuple[float, float]:
    """The trials on both sides of the value that [tune] found, between which the best one lies; 0 and infinity beyond the grid."""
    number, tuned = _tuned(run), run.tuned or {}
    values = [value for value, _ in tuned["tried"]]
    if not (found := sizes(values)):
        return number, number
    won = found[values.index(tuned["value"])]
    scale = number / won if won else 1.0
    below, above = [size for size in found if size < won], [size for size in found if size > won]
    return scale * max(below, default=0.0), scale * min(above, default=math.inf)


def _tuned(run: Run) -> float:
    """The number that [tune] found, that of a formula as the run evaluated it; Missing if nothing was tuned."""
    if not run.tuned or isinstance(run.tuned["value"], Mapping):
        raise Missing(run.label, "tuned parameter")
    if (name := run.tuned["parameter"].removeprefix("algorithm.")) in run.evaluated:
        return run.evaluated[name]
    return evaluate(run.tuned["value"], {"L": run.attrs["L"]})


@dataclass(frozen=True)
class Function:
    """A function of claims."""

    usage: str  # a claim writes it so
    says: str
    of_rows: Callable[[NDArray], float] | None = None  # takes a column or a formula, in all records or in those of a window
    of_run: Callable[[Run], float] | None = None


_OVER = "of a column or of a formula in columns, over all records, or those with 9 < epoch ≤ 10"
FUNCTIONS = {
    "largest": Function("largest('distance / bound', 'GD')", f"the largest value {_OVER}", np.nanmax),
    "smallest": Function("smallest('loss', 'GD', epoch=(9, 10))", f"the smallest value {_OVER}", np.nanmin),
    "mean": Function("mean('loss', 'GD', epoch=(9, 10))", f"the mean value {_OVER}", np.nanmean),
    "tuned": Function("tuned('GD')", "the number that [tune] found, after theory or another formula is evaluated", of_run=_tuned),
}
_COLUMNS = (
    Function("COLUMN('GD')", "a column's last entry; over several runs, as of 'T = *', the smallest"),
    Function("COLUMN('GD', loss=0.4)", "its entry in the first record whose loss is 0.4 or less; infinite where there is none"),
)


def listing() -> Iterator[str]:
    """A line for each function: how a claim writes it, and what it says."""
    yield from (f"  {function.usage:38s} {function.says}" for function in (*_COLUMNS, *FUNCTIONS.values()))


@dataclass(frozen=True)
class Window:
    """The rows of a run in which a column is above `low` and at most `high`."""

    column: str
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:g} < {self.column} <= {self.high:g}"


@dataclass(frozen=True)
class Question:
    """A number that a claim's value asks of a run; where it names several runs, their smallest number is meant."""

    labels: Sequence[str]  # the runs'
    name: str  # a function's or a column's
    formula: str = ""  # a column, or a formula in columns
    columns: Sequence[str] = ()  # the formula names them
    until: str = ""  # a column: not the last record counts but the first where it has come down to `level`, or risen to it
    level: float = math.nan
    runs: str = ""  # the claim's words for them
    window: Window | None = None  # the records that count; None: all

    def answer(self, run: Run) -> float:
        """The number of one run; Missing or Unknown where it has none."""
        if "suboptimality" in (*self.columns, self.until) and np.all(np.isnan(run.column("suboptimality"))):
            raise Unknown(f"f* of '{run.label}' is not known, and so its suboptimality is not")
        function = FUNCTIONS.get(self.name)
        if function is None:
            column = run.column(self.name)
            if not self.until:
                return float(column[-1])
            return entry_at(column, run.column(self.until), self.level, rises(self.until, run.rising))
        if function.of_run is not None:
            return function.of_run(run)
        assert function.of_rows is not None
        values = self._values(run)
        return math.nan if np.all(np.isnan(values)) else float(function.of_rows(values))

    def _values(self, run: Run) -> NDArray:
        """The column or formula in the rows of the window; Missing if there are none."""
        values = _row_by_row(self.formula, self.columns, run)
        if self.window is None:
            return values
        at = run.column(self.window.column)
        chosen = values[(self.window.low < at) & (at <= self.window.high)]
        if not chosen.size:
            raise Missing(run.label, f"record with {self.window}")
        return chosen


def _row_by_row(formula: str, names: Sequence[str], run: Run) -> NDArray:
    """A column, or a formula in columns, row by row; NaN where it divides by 0."""
    if formula in names:
        return run.column(formula)
    rows = zip(*(run.column(name).tolist() for name in names), strict=True)
    return np.array([_at_row(formula, dict(zip(names, row, strict=True))) for row in rows])


def _at_row(formula: str, columns: Mapping[str, float]) -> float:
    try:
        return evaluate(formula, columns) if all(map(math.isfinite, columns.values())) else math.nan
    except ValueError:
        return math.nan
