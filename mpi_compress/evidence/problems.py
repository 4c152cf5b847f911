"""Runs of any jobs on one problem, whose data, objective, workers and start are equal; and which methods need the least on each."""

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mpi_compress.evidence.comparison import ComparedMethod, Comparison, amount, best_of_each, compare
from mpi_compress.evidence.outcomes import Outcome
from mpi_compress.job.tuning import untuned
from mpi_compress.results.columns import column_of
from mpi_compress.results.reader import Run
from mpi_compress.results.settings import settings_of
from mpi_compress.results.summary import partition_of
from mpi_compress.results.targets import Target, share_text
from mpi_compress.results.tuning import in_words, put_by
from mpi_compress.results.units import counted_by

HEADS = ("problem", "target", "least", "method", "then", "not compressed", "sending the data", "reached by")
_WAYS = {by: ["wire_bits_up", "wire_bits"] for by in ("wire_bits_up", "wire_bits")}  # two tables of equal rank
_OF_METHODS = ("participate", "exchange", "master", "patience")  # keys of [workers] that are no part of the problem


def key_of(run: Run, by: str) -> str:
    """A text that is the same for all runs on one problem whose column `by` one cost model, or the same links, count, and for no
    other ones; files with the same name differ."""
    constants = [f"{run.attrs.get(name, np.nan):.6g}" for name in ("L", "mu")]
    texts = [str(run.attrs.get("n_samples")), *constants, by, counted_by(by, run)]
    return json.dumps([_problem(run), texts], sort_keys=True, default=str)


def _problem(run: Run) -> dict[str, Any]:
    """What decides the problem: data, objective, workers and x0."""
    tables = run.written
    workers = {key: value for key, value in tables.get("workers", {}).items() if key not in _OF_METHODS}
    return {"workers": workers, **{key: tables.get(key, {}) for key in ("data", "objective", "start")}}


def name_in(part: Any) -> str:
    """The name of a part, as jobs write it: "top-k", or a table."""
    return str(part.get("name", "")) if isinstance(part, Mapping) else str(part or "")


def parts_of(run: Run) -> dict[str, str]:
    """The parts of a problem, as its job writes them."""
    objective, start = (run.written.get(key, {}) for key in ("objective", "start"))
    penalty = objective.get("penalty") or "none"
    return {
        "data": str(run.attrs.get("data", "")),
        "loss": name_in(objective.get("model") or objective.get("loss") or "logistic"),
        "penalty": f"{penalty.get('weight', '')} {name_in(penalty)}".strip() if isinstance(penalty, Mapping) else penalty,
        "µ": str(objective.get("mu") or 0),
        "workers": str(run.attrs.get("n_workers", 1)),
        "start": in_words(start) if start else "zero",
    }


def differing(runs: Sequence[Run]) -> list[str]:
    """A line on the parts in which the problems of several jobs differ, with the jobs: "workers: 10 (a, b) and 4 (c)"; or []."""
    having: dict[str, dict[str, dict[Path, None]]] = {}
    for run in runs:
        for name, value in parts_of(run).items():
            having.setdefault(name, {}).setdefault(value, {})[run.file.parent] = None
    jobs, apart = {run.file.parent for run in runs}, list[str]()
    for name, values in having.items():
        if any(own.keys() < jobs for own in values.values()):
            each = (f"{value} ({', '.join(job.name for job in own)})" for value, own in values.items())
            apart.append(f"{name}: {' and '.join(each)}")
    return [f"the jobs' problems differ: {'; '.join(apart)}"] if apart else []


def words(run: Run, by: str) -> str:
    """A problem in words: its functions, data, size, and workers; and what counts the column `by`, such as a cost model."""
    problem, parts = _problem(run), parts_of(run)
    functions = f"{parts['loss']} + {parts['penalty']}".removesuffix(" + none") + f", µ = {parts['µ']}".removesuffix(", µ = 0")
    split = partition_of(run)
    shares = "" if split == "contiguous" else f", {split.replace(', ', ' (', 1)}" + ")" * (", " in split)
    others = [f"{k} = {v}" for k, v in problem["data"].items() if k in ("heterogeneity", "seed") and "generator" in problem["data"]]
    sizes = f"d = {run.attrs['dim']}", f"n = {run.attrs['n_workers']}{shares}"
    return ", ".join(filter(None, [functions, str(run.attrs["data"]), *others, *sizes, counted_by(by, run)]))


@dataclass(frozen=True)
class Fewest:
    """A problem, and what each method of any job took to reach the target on it."""

    problem: str
    comparison: Comparison  # the soonest first

    @property
    def methods(self) -> list[ComparedMethod]:
        """Each method once, whatever it was tuned to, the cheapest first."""
        return best_of_each(self.comparison, 0)

    @property
    def reached(self) -> list[ComparedMethod]:
        """The methods that reach the target with half of their seeds or more, the cheapest first."""
        return [method for method in self.methods if method.cells[0].median < math.inf]

    @property
    def cells(self) -> list[str]:
        """The row of the table, under `HEADS`."""
        reached = self.reached
        least = [f"{method.name}, {self._took(method)}" for method in reached]
        dense = [method for method in self.methods if _is_dense(method.runs[0])]
        data = [method for method in self.comparison.methods if name_in(method.runs[0].written.get("algorithm")) == "ship-data"]
        return [
            self.problem,
            str(self.comparison.targets[0]),
            self._took(reached[0]) if reached else "no run reaches it",
            reached[0].name if reached else "–",
            "; ".join(least[1:3]) or "–",
            f"{dense[0].name}, {self._took(dense[0])}" if dense else "–",
            self._took(data[0]) if data else "–",
            f"{len(reached)} of {len(self.methods)}",
        ]

    def _took(self, method: ComparedMethod) -> str:
        cell = method.cells[0]
        if cell.median == math.inf:
            return cell.why
        return amount(cell.median, self.comparison.by, cell.unit) + share_text(cell.took)


def fewest(found: Sequence[Outcome]) -> list[Fewest]:
    """A row for each problem and target of jobs with `to` in [figure], by bits up and by bits up and down. Runs of one problem in
    several jobs stand together."""
    groups: dict[str, tuple[list[Run], Target, str]] = {}
    for o in found:
        if o.job is None or o.job.figure.to is None:
            continue
        ((column, level),) = o.job.figure.to.items()
        for by, run in itertools.product(_WAYS.get(o.job.figure.by, [o.job.figure.by]), o.runs):
            if run.has(column) and run.has(by):
                key = json.dumps([key_of(run, by), column, level])
                runs, _, _ = groups.setdefault(key, ([], Target.of(column, level, run.rising), by))
                if not any(_is_same(run, other, column, by) for other in runs):
                    runs.append(run)
    return [Fewest(words(runs[0], by), compare(runs, [target], by)) for runs, target, by in groups.values()]


def _is_same(run: Run, other: Run, *columns: str) -> bool:
    """True for one run in two jobs, and for a run tuned to the step of its theorem beside the one that is given this step."""
    if run.attrs["run_id"] == other.attrs["run_id"]:
        return True
    return _played(run) == _played(other) and all(np.array_equal(run.column(c), other.column(c)) for c in columns)


def _played(run: Run) -> dict[str, Any]:
    """The settings of a run: after [tune] with the value that it found."""
    return {**untuned(settings_of(run.written)), **(put_by(run.tuned) if run.tuned else {})}


def by_column(rows: Sequence[Fewest]) -> dict[str, list[Fewest]]:
    """The rows by what they count, sorted by problem."""
    found: dict[str, list[Fewest]] = {}
    for row in sorted(rows, key=lambda row: row.problem):
        found.setdefault(column_of(row.comparison.by).label, []).append(row)
    return found


def _is_dense(run: Run) -> bool:
    """True for gradient descent with whole gradients."""
    compressor = run.written.get("up", {}).get("compressor", "identity")
    return name_in(run.written.get("algorithm")) == "gd" and name_in(compressor) == "identity"
