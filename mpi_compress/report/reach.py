"""Tables of what each method needed to reach a target: of a job, and of several jobs on one problem, with what a slider needs.

Without scripts a page shows each table at a few fixed targets. The slider goes over levels that runs logged: for each of them the
page holds the row at which each run reaches it, and what the run had spent by then, so that its numbers are those of
`mpi-compress table`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.errors import UserError
from mpi_compress.evidence import levels
from mpi_compress.evidence.comparison import BY, Comparison, compare
from mpi_compress.evidence.lines import name_of
from mpi_compress.evidence.outcomes import Outcome
from mpi_compress.evidence.problems import Problem
from mpi_compress.report.series import short
from mpi_compress.results.columns import column_of
from mpi_compress.results.reader import Run
from mpi_compress.results.targets import Target
from mpi_compress.results.units import unit_of

_RISING = ("test_accuracy", "hit_rate")
_TARGETS = ("suboptimality", "loss", "grad_norm", "distance", "test_loss", "perplexity", *_RISING)
_BY = (BY[0], "wire_bits", *BY[1:3], "model_seconds", *BY[3:])
_MOST = 4  # columns of which a table's target can be


@dataclass(frozen=True)
class Column:
    """A column whose level can be the target, with fixed targets and levels, each from the easiest to the hardest."""

    name: str
    rising: bool
    targets: Sequence[float]
    levels: Sequence[float]

    def target(self, level: float) -> Target:
        return Target(self.name, level, self.rising)

    def rows_of(self, run: Run) -> NDArray[np.intp] | None:
        """The rows at which a run reaches each of the levels and then the targets, -1 where none does; None without the column."""
        if not run.has(self.name):
            return None
        values = run.column(self.name) * (-1.0 if self.rising else 1.0)
        least = np.minimum.accumulate(np.where(np.isnan(values), np.inf, values))
        wanted = np.array([*self.levels, *self.targets]) * (-1.0 if self.rising else 1.0)
        rows = np.searchsorted(-least, -wanted, side="left")
        return np.where(rows < values.size, rows, -1)


@dataclass(frozen=True)
class Method:
    """A row of a table: runs of one job that differ in their seed alone."""

    name: str
    job: str  # its key
    runs: Sequence[Run]


@dataclass(frozen=True)
class TargetTable:
    """What methods of one job or of several needed; the first of `columns` and of `by` is shown first."""

    id: str
    methods: Sequence[Method]
    columns: Sequence[Column]
    by: Sequence[str]
    comparison: Comparison  # of the methods in their order, to the first column's fixed targets

    @property
    def runs(self) -> list[Run]:
        return [run for method in self.methods for run in method.runs]

    @property
    def rows(self) -> list[tuple[Method, list[str]]]:
        """Each method with what it took to the fixed targets; the soonest first."""
        return [(own, list(map(str, each.cells))) for own, each in zip(self.methods, self.comparison.methods, strict=True)]


def table(id: str, runs: Sequence[tuple[Run, str]], of: Sequence[Outcome], most: int) -> TargetTable | None:
    """The table of runs, each with the key of its job; None where no run comes nearer to any target.

    Args:
        of: the jobs, whose figures say what comes first.
        most: levels of the slider.
    """
    jobs = {run.file: job for run, job in runs if run.rows}
    those = [run for run, _ in runs if run.file in jobs]
    by = [name for name in dict.fromkeys([*_first_by(of), *_BY]) if any(run.has(name) for run in those)]
    found = (_column(name, those, of, most) for name in _wanted(of, those))
    columns = [column for column in found if column is not None][:_MOST]
    if not columns:
        return None
    comparison = compare(those, [columns[0].target(level) for level in columns[0].targets], by[0])
    return TargetTable(id, list(_methods(comparison, jobs)), columns, by, comparison)


def of_job(o: Outcome, id: str, most: int) -> TargetTable | None:
    """The table of a job."""
    return table(id, [(run, o.key) for run in o.shown], [o], most)


def of_problem(problem: Problem, id: str, most: int) -> TargetTable | None:
    """The table of the methods of several jobs on one problem."""
    return table(id, problem.runs, problem.outcomes, most)


def _methods(comparison: Comparison, jobs: dict[Path, str]) -> Iterator[Method]:
    """The methods by name; where one job has two of a name, by the settings in which they differ, too."""
    named = [(name_of(each.runs[0]), jobs[each.runs[0].file]) for each in comparison.methods]
    for each, (name, job) in zip(comparison.methods, named, strict=True):
        yield Method(name if named.count((name, job)) == 1 else each.label, job, each.runs)


def _first_by(of: Sequence[Outcome]) -> list[str]:
    """What jobs count: `by` of a figure with a target, or the x of a figure that grows in every run."""
    figures = [o.job.figure for o in of if o.job is not None]
    return [name for name in (figure.by if figure.to else figure.x for figure in figures) if levels.grows(name)]


def _wanted(of: Sequence[Outcome], runs: Sequence[Run]) -> list[str]:
    """The columns whose levels are targets, first those that the jobs' figures show."""
    figures = [o.job.figure for o in of if o.job is not None]
    asked = [name for figure in figures for name in (*(figure.to or {}), *(figure.at or {}), figure.y.split(",")[0].strip())]
    first = [name for name in asked if name in _TARGETS or column_of(name).falls]
    return [name for name in dict.fromkeys([*first, *_TARGETS]) if any(_is_known(run, name) for run in runs)]


def _column(name: str, runs: Sequence[Run], of: Sequence[Outcome], most: int) -> Column | None:
    tables = [table for o in of if o.job is not None for table in (o.job.figure.to, o.job.figure.at)]
    asked = [float(table[name]) for table in tables if table and name in table]
    rising, falls = name in _RISING, column_of(name).falls
    each = [run.column(name) for run in runs if _is_known(run, name)]
    targets = levels.round_targets(each, rising, falls, asked)
    return Column(name, rising, targets, levels.levels(each, rising, falls, most)) if targets else None


def _is_known(run: Run, name: str) -> bool:
    if not (name in run.trace or column_of(name).derive):
        return False
    try:
        return bool(np.isfinite(run.column(name)).any())
    except (UserError, KeyError):
        return False


def data(tables: Sequence[TargetTable]) -> dict[str, Any]:
    """What the slider needs: what each run had spent at the rows at which it reaches a level, and which rows these are."""
    runs = {run.file: run for table in tables for run in table.runs}
    rows = {
        (table.id, column.name, run.file): found
        for table in tables
        for column in table.columns
        for run in table.runs
        if (found := column.rows_of(run)) is not None
    }
    picked = {file: np.unique([row for key, each in rows.items() if key[2] == file for row in each if row >= 0]) for file in runs}
    names = {file: {n for t in tables for n in t.by if run in t.runs} for file, run in runs.items()}
    columns = list(dict.fromkeys(column.name for table in tables for column in table.columns))
    number = {file: i for i, file in enumerate(runs)}
    return {
        "runs": [_run(run, picked[file].astype(np.intp), sorted(names[file]), columns) for file, run in runs.items()],
        "tables": {table.id: _table(table, number, rows, picked) for table in tables},
    }


def _run(run: Run, rows: NDArray[np.intp], by: Sequence[str], columns: Sequence[str]) -> dict[str, Any]:
    """A run: its end, and what it had spent at some rows."""
    having = [name for name in columns if run.has(name)]
    return {
        "status": run.status,
        "round": int(run.trace["round"][-1]),
        "ends": {name: short(run.column(name)[-1:])[0] for name in having},
        "unknown": [name for name in having if Target(name, 0.0).is_unknown(run)],
        "by": {name: short(run.column(name)[rows]) for name in by if run.has(name)},
    }


def _table(table: TargetTable, number: dict[Path, int], rows: dict[Any, NDArray], picked: dict[Path, NDArray]) -> dict[str, Any]:
    """A table: its columns with the place of each row among the run's, and its methods by the runs' numbers."""

    def places(column: Column, run: Run) -> list[int | None]:
        found = rows[table.id, column.name, run.file]
        return [None if row < 0 else int(place) for row, place in zip(found, np.searchsorted(picked[run.file], found), strict=True)]

    columns = [
        {
            "name": column.name, "label": column_of(column.name).label, "rising": column.rising,
            "unknown": column.target(0.0).why_unknown(), "levels": list(column.levels), "targets": list(column.targets),
            "at": {number[run.file]: places(column, run) for run in table.runs if run.has(column.name)},
        }
        for column in table.columns
    ]  # fmt: skip
    by = [
        {"name": name, "label": column_of(name).label, "unit": unit_of(name, table.runs), "whole": _is_whole(name)}
        for name in table.by
    ]
    methods = [{"name": each.name, "job": each.job, "runs": [number[run.file] for run in each.runs]} for each in table.methods]
    return {"columns": columns, "by": by, "methods": methods}


def _is_whole(name: str) -> bool:
    return name == "round" or column_of(name).dtype == "int64"
