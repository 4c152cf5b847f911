"""The columns that a job's [figure] and claims name: refused where none of the runs in question logs them."""

import math
from collections.abc import Sequence

from mpi_compress.algorithms.steps import formulas_of
from mpi_compress.core.errors import UserError, nearest, placed
from mpi_compress.job.claim_functions import Question
from mpi_compress.job.runs import RunSpec
from mpi_compress.job.stopping import Logged
from mpi_compress.job.tables import FigureTable
from mpi_compress.problem.metrics import metrics
from mpi_compress.results.columns import known
from mpi_compress.results.settings import settings_of


def refuse_unlogged(figure: FigureTable, runs: Sequence[RunSpec]) -> None:
    """UserError for a column of a figure or its panels that no run logs."""
    for i, table in enumerate([figure, *figure.panel]):
        for key in ("x", "y", "bounds", "at", "to", "by", "notes"):
            value = getattr(table, key, None) or ()
            for name in value.split(",") if isinstance(value, str) else value:
                with placed(f"figure.panel {i}.{key}: " if i else f"figure.{key}: "):
                    _refuse(name.strip(), runs)


def unanswered(question: Question, runs: Sequence[RunSpec]) -> float:
    """NaN for what a claim asks of runs; UserError for a column that none of them logs."""
    for name in filter(None, [*question.columns, question.until, question.window.column if question.window else ""]):
        _refuse(name, [run for run in runs if run.label in question.labels])
    return math.nan


def _refuse(name: str, runs: Sequence[RunSpec]) -> None:
    """UserError, as for the first of these runs, for a column that none of them logs."""
    why = ""
    for run in reversed(runs):
        if not (why := _why_not(name, run)):
            return
    raise UserError(why)


def _why_not(name: str, run: RunSpec) -> str:
    """Why a run's result has no column of that name, "" if it may have: --set and the like may take away what a job has."""
    logged = Logged(run.log, run.metrics, run.data, run.cost, run.computing, run.algorithm)
    if known(name):
        return "" if run.overridden else logged.why_not(name)
    names = {*logged.columns, *settings_of(dict(run.written)), *formulas_of(type(run.algorithm))}
    if name.removeprefix("algorithm.") in names or name in names or logged.logs_any:
        return ""
    if (metric := name.replace("_", "-")) in metrics:
        return f'\'{name}\' is a metric that the runs do not log; [log] metrics = ["{metric}"] adds it'
    return nearest(name, names, "column")
