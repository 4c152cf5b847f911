"""Answers to what claims ask, from the results of one seed, and what their reader has to know of them."""

import math
from collections.abc import Mapping, Sequence

from mpi_compress.job.claim_functions import Missing, Question
from mpi_compress.results.reader import Run
from mpi_compress.results.tidy import settings_of, varying
from mpi_compress.results.tuning import caveat, sizes


class Answers:
    """Answers questions from the results of one seed, by label.

    Attributes:
        unreached: levels that no run came down to.
        edges: runs that were best of a grid, or have the value that was best in [tune], at its edge or not settled.
    """

    def __init__(self, runs: Mapping[str, Run | None]):
        self._runs = runs
        self.unreached: set[str] = set()
        self.edges: set[str] = set()

    def __call__(self, q: Question) -> float:
        runs = [self._run(label) for label in q.labels]
        answers = [q.answer(run) for run in runs]
        smallest = min((value for value in answers if not math.isnan(value)), default=math.nan)
        if q.until and smallest == math.inf:
            self.unreached.add(f"{q.runs} never comes down to {q.until} = {q.level:g}")
        elif len(runs) > 1 and smallest in answers and at_edge(best := runs[answers.index(smallest)], runs):
            self.edges.add(f"'{best.label}' is best, at the edge of its grid")
        return smallest

    def _run(self, label: str) -> Run:
        if (run := self._runs[label]) is None:
            raise Missing(label, "result")
        if run.tuned and (note := caveat(run.tuned)):
            self.edges.add(f"'{label}' is tuned to {run.tuned['value']}, {note}")
        return run


def at_edge(run: Run, runs: Sequence[Run]) -> bool:
    """True if three or more runs differ in numbers alone that rise or fall together, and it has the least or the largest."""
    settings = [{key: value for key, value in settings_of(each).items() if key != "seed"} for each in runs]
    keys = varying(settings)
    columns = [sizes([each.get(key) for each in settings]) for key in keys]
    if len(runs) < 3 or not keys or not all(columns):
        return False
    rows = sorted(zip(*columns, strict=True))
    together = all(list(column) in (sorted(column), sorted(column, reverse=True)) for column in zip(*rows, strict=True))
    return together and columns[0][runs.index(run)] in (rows[0][0], rows[-1][0])
