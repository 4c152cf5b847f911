"""The methods that need the least to reach the target of their jobs, problem by problem."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpi_compress.evidence.comparison import ComparedMethod, Comparison, amount, compare
from mpi_compress.evidence.outcomes import Outcome
from mpi_compress.evidence.problems import key_of, name_in, words
from mpi_compress.results.columns import column_of
from mpi_compress.results.reader import Run
from mpi_compress.results.targets import Target
from mpi_compress.results.tidy import settings_of

HEADS = ("problem", "target", "least", "method", "then", "not compressed", "the data itself", "reached by")
"""The heads of the table."""

_DENSE = ("identity",)


@dataclass(frozen=True)
class Fewest:
    """A problem, and what each method of any job took to reach the target on it."""

    problem: str
    comparison: Comparison  # the soonest first

    @property
    def by(self) -> str:
        """What is counted, in words."""
        return column_of(self.comparison.by).label

    @property
    def reached(self) -> list[ComparedMethod]:
        """The methods that reach the target with half of their seeds or more, the cheapest first."""
        return [method for method in self.comparison.methods if method.cells[0].median < math.inf]

    @property
    def cells(self) -> list[str]:
        """The row of the table, under `HEADS`."""
        reached = self.reached
        least = [f"{method.label}, {self._took(method)}" for method in reached]
        dense = [method for method in self.comparison.methods if _is_dense(method.runs[0])]
        data = [method for method in self.comparison.methods if name_in(method.runs[0].written.get("algorithm")) == "ship-data"]
        return [
            self.problem,
            str(self.comparison.targets[0]),
            self._took(reached[0]) if reached else "no run reaches it",
            reached[0].label if reached else "–",
            "; ".join(least[1:3]) or "–",
            f"{dense[0].label}, {self._took(dense[0])}" if dense else "–",
            self._took(data[0]) if data else "–",
            f"{len(reached)} of {len(self.comparison.methods)}",
        ]

    def _took(self, method: ComparedMethod) -> str:
        median = method.cells[0].median
        return amount(median, self.comparison.by) if median < math.inf else str(method.cells[0])


def fewest(found: Sequence[Outcome]) -> list[Fewest]:
    """A row for each problem and target of jobs with `to` in [figure]; runs of one problem in several jobs stand together."""
    groups: dict[str, tuple[list[Run], Target, str]] = {}
    for o in found:
        if o.job is None or o.job.figure.to is None:
            continue
        ((column, level),) = o.job.figure.to.items()
        for run in o.runs:
            if run.has(column) and run.has(o.job.figure.by):
                key = json.dumps([key_of(run), column, level, o.job.figure.by])
                runs, _, _ = groups.setdefault(key, ([], Target.of(column, level), o.job.figure.by))
                if not any(_is_same(run, other, column, o.job.figure.by) for other in runs):
                    runs.append(run)
    return [Fewest(words(runs[0]), compare(runs, [target], by)) for runs, target, by in groups.values()]


def _is_same(run: Run, other: Run, *columns: str) -> bool:
    """True for one run in two jobs, and for a run tuned to the step of its theorem beside the one that is given this step."""
    if run.attrs["run_id"] == other.attrs["run_id"]:
        return True
    return _played(run) == _played(other) and all(np.array_equal(run.column(c), other.column(c)) for c in columns)


def _played(run: Run) -> dict[str, Any]:
    """The settings that a run was played with: after [tune] with the value that it found."""
    found = {key: value for key, value in settings_of(run).items() if key.partition(".")[0] != "tune"}
    return found | ({run.tuned["parameter"]: run.tuned["value"]} if run.tuned else {})


def lines(rows: Sequence[Fewest]) -> Iterator[str]:
    """The table as text, each problem in one or two lines."""
    for by, those in by_column(rows).items():
        yield f"least {by}, by problem:"
        for row in those:
            cells = dict(zip(HEADS, row.cells, strict=True))
            yield f"  {cells['problem']}; {cells['target']}: {cells['least']}, {cells['method']} ({cells['reached by']} reach it)"
            if len(row.reached) > 1:
                yield f"      then {cells['then']}; " + "; ".join(f"{head}: {cells[head]}" for head in HEADS[5:7])


def by_column(rows: Sequence[Fewest]) -> dict[str, list[Fewest]]:
    """The rows by what they count, sorted by problem."""
    found: dict[str, list[Fewest]] = {}
    for row in sorted(rows, key=lambda row: row.problem):
        found.setdefault(row.by, []).append(row)
    return found


def _is_dense(run: Run) -> bool:
    """True for gradient descent with whole gradients."""
    tables = run.written
    return name_in(tables.get("algorithm")) == "gd" and name_in(tables.get("up", {}).get("compressor", "identity")) in _DENSE

