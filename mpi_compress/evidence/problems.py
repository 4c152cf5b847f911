"""Which runs of any jobs are on one problem: data, objective, workers and start are equal, whatever the method."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mpi_compress.evidence.outcomes import Outcome
from mpi_compress.results.reader import Run

_OF_METHODS = ("participate", "exchange", "master", "patience")  # keys of [workers] that are no part of the problem


@dataclass
class ProblemRuns:
    """A problem, and all runs on it, with the keys of their jobs."""

    words: str
    data: str
    runs: list[tuple[Run, str]] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def jobs(self) -> list[str]:
        """The keys of the jobs that have a run of their own here."""
        return list(dict.fromkeys(key for _, key in self.runs))


def by_problem(found: Sequence[Outcome]) -> list[ProblemRuns]:
    """The problems of all jobs, in the order of their data; a run that several jobs share stands there once."""
    problems: dict[str, ProblemRuns] = {}
    for o in found:
        for run in o.shown:
            problem = problems.setdefault(key_of(run), ProblemRuns(words(run), str(run.attrs["data"])))
            if all(run.attrs["run_id"] != other.attrs["run_id"] for other, _ in problem.runs):
                problem.runs.append((run, o.key))
            if o not in problem.outcomes:
                problem.outcomes.append(o)
    return sorted(problems.values(), key=lambda problem: (problem.data, problem.words))


def key_of(run: Run) -> str:
    """A text that is the same for all runs on one problem, and on no other one of files with the same name."""
    constants = [f"{run.attrs.get(name, np.nan):.6g}" for name in ("L", "mu")]
    return json.dumps([_problem(run), str(run.attrs.get("n_samples")), constants], sort_keys=True, default=str)


def _problem(run: Run) -> dict[str, Any]:
    """What decides the problem: data, objective, workers and x0."""
    tables = run.written
    workers = {key: value for key, value in tables.get("workers", {}).items() if key not in _OF_METHODS}
    objective = {key: value for key, value in tables.get("objective", {}).items() if key != "clip_rows"}  # f stays as it is
    return {"workers": workers, "objective": objective, **{key: tables.get(key, {}) for key in ("data", "start")}}


def name_in(part: Any) -> str:
    """The name of a part, as jobs write it: "top-k", or a table."""
    return str(part.get("name", "")) if isinstance(part, Mapping) else str(part or "")


def words(run: Run) -> str:
    """A problem in words: its functions, data, size, and workers."""
    problem = _problem(run)
    objective, workers = problem["objective"], problem["workers"]
    functions = name_in(objective.get("model") or objective.get("loss") or "logistic")
    if penalty := objective.get("penalty"):
        functions += f" + {penalty.get('weight', '')} {name_in(penalty)}" if isinstance(penalty, Mapping) else f" + {penalty}"
    if (mu := objective.get("mu")) not in (None, 0, 0.0):
        functions += f", µ = {mu}"
    split = workers.get("partition", "contiguous")
    parameters = [f"{k} = {v}" for k, v in split.items() if k != "name"] if isinstance(split, Mapping) else []
    detail = f" ({', '.join(parameters)})" if parameters else ""
    dealt = f", {name_in(split)}{detail}" if split != "contiguous" else ""
    others = [f"{k} = {v}" for k, v in problem["data"].items() if k in ("heterogeneity", "seed") and "generator" in problem["data"]]
    sizes = f"d = {run.attrs['dim']}", f"n = {run.attrs['n_workers']}{dealt}"
    return ", ".join([functions, str(run.attrs["data"]), *others, *sizes])
