"""Answers to what claims ask: numbers taken from the results of one seed."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mpi_compress.core.expressions import evaluate
from mpi_compress.evidence.lines import entry_at
from mpi_compress.job.claims import Question
from mpi_compress.results.reader import Run
from mpi_compress.results.tuning import AT_END, at_end

_OVER_ROWS: dict[str, Callable[[np.ndarray], float]] = {"largest": np.nanmax, "smallest": np.nanmin, "mean": np.nanmean}
TUNED = "tuned"  # the name by which a claim asks for the value that [tune] found
_NUMBER = r"\d+(?:\.\d+)?(?:e-?\d+)?"


class Missing(Exception):
    """The run of a label, or its rows in a window, which a claim needs, are not there."""

    def __init__(self, label: str, what: str):
        super().__init__(f"'{label}' has no {what}")
        self.label, self.what = label, what


class Unknown(Exception):
    """A column that a claim needs has no number in any row: says why."""


class Answers:
    """Answers questions from the results of one seed, by label.

    Attributes:
        unreached: levels that no run came down to.
        edges: runs that were best of a grid, or have the value that was best in [tune], and stand at its edge.
    """

    def __init__(self, runs: Mapping[str, Run | None]):
        self._runs = runs
        self.unreached: set[str] = set()
        self.edges: set[str] = set()

    def __call__(self, q: Question) -> float:
        answers = [_answer(q, self._run(label)) for label in q.labels]
        smallest = min((value for value in answers if not math.isnan(value)), default=math.nan)
        if q.until and smallest == math.inf:
            self.unreached.add(f"{q.runs} never comes down to {q.until} = {q.level:g}")
        elif len(answers) > 1 and smallest in answers and at_edge(best := q.labels[answers.index(smallest)], q.labels):
            self.edges.add(f"'{best}' is best, at the edge of its grid")
        return smallest

    def _run(self, label: str) -> Run:
        if (run := self._runs[label]) is None:
            raise Missing(label, "result")
        if run.tuned and at_end(run.tuned):
            self.edges.add(f"'{label}' is tuned to {run.tuned['value']}, {AT_END}")
        return run


def at_edge(label: str, labels: Sequence[str]) -> bool:
    """True if labels differ in one number alone, and it is the least or the largest in this one."""
    numbers = {each: [float(number) for number in re.findall(_NUMBER, each)] for each in labels}
    if len({re.sub(_NUMBER, "#", each) for each in labels}) > 1 or len(labels) < 3:
        return False
    varying = [column for column in zip(*numbers.values(), strict=True) if len(set(column)) > 1]
    own = [column[labels.index(label)] for column in varying]
    return len(varying) == 1 and own[0] in (min(varying[0]), max(varying[0]))


def _answer(q: Question, run: Run) -> float:
    for name in (*q.columns, *([q.until] if q.until else [])):
        if name == "suboptimality" and np.all(np.isnan(run.column(name))):
            raise Unknown(f"f* of '{run.label}' is not known, and so its suboptimality is not")
    if q.over != "last":
        return float(_OVER_ROWS[q.over](_over_rows(q, run)))
    if q.until:
        return entry_at(run.column(q.formula), run.column(q.until), q.level)
    if q.formula == TUNED:
        return _tuned(run)
    return float(run.column(q.formula)[-1])


def _tuned(run: Run) -> float:
    """The number that [tune] found, that of a formula as the run settled it; Missing if nothing was tuned."""
    if not run.tuned:
        raise Missing(run.label, "tuned parameter")
    if (name := run.tuned["parameter"].removeprefix("algorithm.")) in (settled := json.loads(run.attrs.get("settled", "{}"))):
        return float(settled[name])
    return evaluate(run.tuned["value"], {"L": run.attrs["L"]})


def _over_rows(question: Question, run: Run) -> np.ndarray:
    """A column, or a formula in columns, in the rows of the question's window; Missing if there are none."""
    values = _row_by_row(question, run)
    if question.window is None:
        return values
    at = run.column(question.window.column)
    chosen = values[(question.window.low < at) & (at <= question.window.high)]
    if not chosen.size:
        raise Missing(run.label, f"row with {question.window}")
    return chosen


def _row_by_row(question: Question, run: Run) -> np.ndarray:
    """A column, or a formula in columns, row by row; NaN where it divides by 0."""
    names = question.columns
    if question.formula in names:
        return run.column(question.formula)
    rows = zip(*(run.column(name).tolist() for name in names), strict=True)
    return np.array([_at_row(question.formula, dict(zip(names, row, strict=True))) for row in rows])


def _at_row(formula: str, columns: Mapping[str, float]) -> float:
    try:
        return evaluate(formula, columns) if all(map(math.isfinite, columns.values())) else math.nan
    except ValueError:
        return math.nan
