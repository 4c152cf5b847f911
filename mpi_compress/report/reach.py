"""Tables of what each method needed to reach a target: of a job, and of several jobs on one problem, with what a slider shows.

Without scripts a page shows each table at a few fixed targets. The slider goes over levels that runs logged. For each of them the
page holds the cells of `mpi-compress table`, the order of the methods, and how long their bars are: the script computes nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mpi_compress.core.errors import UserError
from mpi_compress.evidence import levels
from mpi_compress.evidence.comparison import BY, Cell, Comparison, cells, compare
from mpi_compress.evidence.lines import name_of
from mpi_compress.evidence.outcomes import Outcome
from mpi_compress.evidence.problems import ProblemRuns, by_problem
from mpi_compress.job.tables import FigureTable
from mpi_compress.report.series import as_json
from mpi_compress.results.columns import column_of
from mpi_compress.results.reader import Run
from mpi_compress.results.targets import Target, grows, rises

_TARGETS = ("suboptimality", "loss", "grad_norm", "distance", "test_loss", "perplexity", "test_accuracy", "hit_rate")
_BY = (BY[0], "wire_bits", *BY[1:3], "model_seconds", *BY[3:])
_MOST = 4  # columns of which a table's target can be
LEVELS = (12, 50)  # a slider has so many levels at least, and at most
CELLS = 120_000  # all sliders together have no more, at about 30 bytes each, unless they have the fewest levels


@dataclass(frozen=True)
class TargetColumn:
    """A column whose level can be the target, and fixed targets, from the easiest to the hardest."""

    name: str
    targets: Sequence[Target]

    def levels(self, runs: Sequence[Run], most: int) -> list[Target]:
        """About `most` of the levels that runs logged, from the easiest to the hardest."""
        rising, falls = rises(self.name), column_of(self.name).falls
        found = levels.levels([run.column(self.name) for run in runs if _is_known(run, self.name)], rising, falls, most)
        return [Target(self.name, level, rising) for level in found]


@dataclass(frozen=True)
class MethodRuns:
    """A row of a table: runs of one job that differ in their seed alone."""

    name: str
    job: str  # its key
    runs: Sequence[Run]


@dataclass(frozen=True)
class TargetTable:
    """What methods of one job or of several needed; the first of `columns` and of `by` is shown first."""

    id: str
    methods: Sequence[MethodRuns]
    columns: Sequence[TargetColumn]
    by: Sequence[str]
    comparison: Comparison  # what the methods took, in their order, to the first column's fixed targets

    @property
    def runs(self) -> list[Run]:
        return [run for method in self.methods for run in method.runs]

    @property
    def rows(self) -> list[tuple[MethodRuns, list[str]]]:
        """Each method with what it took to the fixed targets; the soonest first."""
        return [(own, list(map(str, each.cells))) for own, each in zip(self.methods, self.comparison.methods, strict=True)]


def table(id: str, runs: Sequence[tuple[Run, str]], of: Sequence[Outcome]) -> TargetTable | None:
    """The table of runs, each with the key of its job; None where no run comes nearer to any target. The figures of the jobs `of`
    say what comes first: what they count, or their x where that grows in every run."""
    jobs, figures = {run.file: job for run, job in runs if run.rows}, [o.job.figure for o in of if o.job is not None]
    those = [run for run, _ in runs if run.file in jobs]
    first = [name for name in (figure.by if figure.to else figure.x for figure in figures) if grows(name)]
    by = [name for name in dict.fromkeys([*first, *_BY]) if any(run.has(name) for run in those)]
    found = (_column(name, those, figures) for name in _wanted(figures, those))
    columns = [column for column in found if column.targets][:_MOST]
    if not columns:
        return None
    comparison = compare(those, columns[0].targets, by[0])
    return TargetTable(id, list(_methods(comparison, jobs)), columns, by, comparison)


def _methods(comparison: Comparison, jobs: dict[Path, str]) -> Iterator[MethodRuns]:
    """The methods by name; where one job has two of a name, by the settings in which they differ, too."""
    named = [(name_of(each.runs[0]), jobs[each.runs[0].file]) for each in comparison.methods]
    for each, (name, job) in zip(comparison.methods, named, strict=True):
        yield MethodRuns(name if named.count((name, job)) == 1 else each.label, job, each.runs)


def _wanted(figures: Sequence[FigureTable], runs: Sequence[Run]) -> list[str]:
    """The columns whose levels are targets, first those that the jobs' figures show."""
    asked = [name for figure in figures for name in (*(figure.to or {}), *(figure.at or {}), figure.y.split(",")[0].strip())]
    first = [name for name in asked if name in _TARGETS or column_of(name).falls]
    return [name for name in dict.fromkeys([*first, *_TARGETS]) if any(_is_known(run, name) for run in runs)]


def _column(name: str, runs: Sequence[Run], figures: Sequence[FigureTable]) -> TargetColumn:
    asked = [float(table[name]) for figure in figures for table in (figure.to, figure.at) if table and name in table]
    each, rising = [run.column(name) for run in runs if _is_known(run, name)], rises(name)
    found = levels.round_targets(each, rising, column_of(name).falls, asked)
    return TargetColumn(name, [Target(name, level, rising) for level in found])


def _is_known(run: Run, name: str) -> bool:
    if not (name in run.trace or column_of(name).derive):
        return False
    try:
        return bool(np.isfinite(run.column(name)).any())
    except (UserError, KeyError):
        return False


def data(tables: Sequence[TargetTable]) -> dict[str, Any]:
    """What sliders show, by the tables' names: the numbers of all tables together decide how many levels a slider has."""
    shown = sum(len(table.columns) * len(table.by) * len(table.methods) for table in tables)
    most = min(max(CELLS // max(shown, 1), LEVELS[0]), LEVELS[1])
    return {table.id: _data(table, most) for table in tables}


def _data(table: TargetTable, most: int) -> dict[str, Any]:
    """A table: its columns with their levels and fixed targets, each counted in several ways, and its methods."""
    texts: dict[str, int] = {}
    columns = []
    for column in table.columns:
        levels = column.levels(table.runs, most)
        views = [_view(table, [*levels, *column.targets], len(levels), by, texts) for by in table.by]
        shown = {"label": column_of(column.name).label, "levels": [*map(str, levels)], "targets": [*map(str, column.targets)]}
        columns.append({**shown, "views": views})
    methods = [{"name": method.name, "job": method.job} for method in table.methods]
    return {"columns": columns, "by": [column_of(by).label for by in table.by], "methods": methods, "texts": [*texts]}


def _view(table: TargetTable, targets: Sequence[Target], moving: int, by: str, texts: dict[str, int]) -> dict[str, Any]:
    """What the methods took, counted in one way, to the `moving` levels of a slider and to the fixed targets after them.

    Returns:
        cells: for each method the numbers of its texts. order: for each level the methods, the soonest first. bars: for each method
        per cent of the longest at each level, 0 where it is not reached. begin: the hardest level that half of the methods reach
        which reach any below the start; without such, the middle.
    """
    each = [cells(method.runs, targets, by) for method in table.methods]
    took = np.array([[cell.median for cell in own] for own in each])
    reached = np.where(took < np.inf, took, 0.0)
    bars = np.rint(100 * reached / np.maximum(reached.max(axis=0), 1e-300)).clip(1) * (took < np.inf)
    last = sorted(int(own[-1]) for row in took[:, :moving] if (own := np.flatnonzero(row < np.inf)).size and own[-1] > 0)
    return {
        "cells": [[texts.setdefault(text, len(texts)) for text in _texts(own)] for own in each],
        "order": np.argsort(took, axis=0, kind="stable").T[:moving].tolist(),
        "bars": bars.astype(int).tolist(),
        "begin": last[len(last) // 2] if last else moving // 2,
    }


def _texts(each: Sequence[Cell]) -> Iterator[str]:
    """The cells as text; neighbours that are equal are written once."""
    before, text = None, ""
    for cell in each:
        if before is None or (cell.took, cell.end, cell.unknown) != (before.took, before.end, before.unknown):
            before, text = cell, str(cell)
        yield text


@dataclass(frozen=True)
class OfData:
    """A data set on which several jobs have a problem in common."""

    id: str
    name: str
    problems: Sequence[tuple[ProblemRuns, TargetTable]]
    others: Sequence[ProblemRuns]  # of one job alone


@dataclass(frozen=True)
class Tables:
    """All tables of a page, and what their sliders need."""

    of_jobs: Mapping[str, TargetTable]  # by the jobs' anchors
    of_data: Sequence[OfData]
    data: str  # JSON

    @classmethod
    def of(cls, found: Sequence[Outcome], ids: Mapping[Outcome, str]) -> "Tables":
        """The tables of these jobs."""
        each = {o: table(f"{ids[o]}-reach", [(run, o.key) for run in o.shown], [o]) for o in found if o.job}
        of_jobs = {ids[o]: table for o, table in each.items() if table is not None}
        of_data = _of_data(found)
        return cls(of_jobs, of_data, as_json(data([*of_jobs.values(), *(own for each in of_data for _, own in each.problems)])))


def _of_data(found: Sequence[Outcome]) -> list[OfData]:
    sets: dict[str, list[ProblemRuns]] = {}
    for problem in by_problem(found):
        sets.setdefault(problem.data, []).append(problem)
    made: list[OfData] = []
    for name, problems in sets.items():
        shared = [each for each in problems if len(each.jobs) > 1]
        tables = [(p, table(f"data-{len(made) + 1}-{i}", p.runs, p.outcomes)) for i, p in enumerate(shared, 1)]
        if own := [(each, table) for each, table in tables if table is not None]:
            made.append(OfData(f"data-{len(made) + 1}", name, own, [each for each in problems if len(each.jobs) == 1]))
    return made
