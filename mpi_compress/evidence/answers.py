"""Answers to what claims ask, from the results of one seed, and what their reader has to know of them."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from mpi_compress.core.errors import UserError
from mpi_compress.evidence.endings import comes_nearer
from mpi_compress.evidence.notes import tuned_for
from mpi_compress.job.claim_functions import Missing, Question, Unknown, tuned_between
from mpi_compress.results.reader import Run
from mpi_compress.results.settings import settings_of, varying
from mpi_compress.results.targets import Target, grows
from mpi_compress.results.tuning import caveat, sizes

NOTES = (
    "unreached",  # levels that no run came down to
    "cut",  # levels before which a run ended that still came nearer, and runs that --set has ended before the job's [stop] does
    "above",  # levels that lie above the start of a run, so that there is nothing to count
    "steps",  # runs whose tuned number lies between two trials
    "edges",  # runs that were best of a grid, or have the value that was best in [tune], at its edge or not settled
    "others",  # runs that may be at other stationary points, and which bits costs are of
)


class Answers:
    """Answers questions from the results of one seed, by label.

    Attributes:
        notes: of each kind of `NOTES` what a reader has to know.
        ends: for each question its answer, or the two ends between which that lies, where it is not known better.
        tuned: what runs were tuned for, with their labels, where they are asked for something else.
    """

    def __init__(self, runs: Mapping[str, Run | None], short: Mapping[str, str]):
        """Answers from runs by label; `short` says by label which runs are shorter than the job's."""
        self._runs, self._short = runs, short
        self.notes: dict[str, set[str]] = {kind: set() for kind in NOTES}
        self.ends: list[tuple[float, ...]] = []
        self.tuned: dict[tuple[str, str], None] = {}

    def __call__(self, q: Question) -> float:
        runs = [self._run(label) for label in q.labels]
        try:
            answers = [q.answer(run) for run in runs]
        except UserError as error:
            raise Unknown(f"a column is not logged: {error}") from None
        smallest = float(np.fmin.reduce(answers))  # which passes over NaN
        ends = [self._between(q, run, answer) for run, answer in zip(runs, answers, strict=True)]
        low, high = map(float, np.fmin.reduce(ends))
        self.ends.append((low, high) if low < high else (smallest,))
        if low < high:
            if ended := [self._short[label] for label in q.labels if label in self._short]:
                self.notes["cut"].update(ended)
            elif q.until:
                early = [run.label for run, end in zip(runs, ends, strict=True) if end[0] < min(high, end[1])]
                which = f"'{early[0]}' was" if len(early) == 1 else f"{len(early)} runs of {q.runs} were"
                self.notes["cut"].add(f"{which} cut off before {q.until} = {q.level:g}")
        for run in runs if q.until else ():
            self.tuned[tuned_for(run, q.name, [Target.of(q.until, q.level, run.rising)]), run.label] = None
        if q.until and smallest == math.inf and not low < high:
            self.notes["unreached"].add(f"{q.runs} never comes down to {q.until} = {q.level:g}")
        elif len(runs) > 1 and smallest in answers and at_edge(best := runs[answers.index(smallest)], runs):
            self.notes["edges"].add(f"'{best.label}' is best, at the edge of its grid")
        return smallest

    def _between(self, q: Question, run: Run, answer: float) -> tuple[float, float]:
        """The ends between which a run's answer lies: those of its trials, or what it had spent as it was cut off, and infinity."""
        if q.name == "tuned":
            low, high = tuned_between(run)
            self.notes["steps"].add(f"the best value of '{run.label}' lies between {low:.4g} and {high:.4g}")
            return low, high
        if run.label in self._short and not q.until and not (q.window and run.column(q.window.column)[-1] > q.window.high):
            return answer if grows(q.name) or q.name == "largest" else -math.inf, answer if q.name == "smallest" else math.inf
        if not q.until or grows(q.until) or not grows(q.name) or not math.isfinite(q.level):
            return answer, answer
        target = Target.of(q.until, q.level, run.rising)
        if target.row_of(run) == 0:
            which = "below" if target.rising else "above"
            self.notes["above"].add(f"{q.until} = {q.level:g} lies {which} the start of '{run.label}'")
        if answer < math.inf or run.status == "diverged":
            return answer, answer
        if run.label not in self._short and comes_nearer([run], target) is False:
            return answer, answer
        return float(run.column(q.name)[-1]), math.inf

    def _run(self, label: str) -> Run:
        if (run := self._runs[label]) is None:
            raise Missing(label, "result")
        if run.tuned and (note := caveat(run.tuned)):
            self.notes["edges"].add(f"'{label}' is tuned to {run.tuned['value']}, {note}")
        return run


def at_edge(run: Run, runs: Sequence[Run]) -> bool:
    """True if three or more runs differ in numbers alone that rise or fall together, and it has the least or the largest."""
    settings = [settings_of(each.written) | {"seed": 0} for each in runs]
    keys = varying(settings)
    columns = [sizes([each.get(key) for each in settings]) for key in keys]
    if len(runs) < 3 or not keys or not all(columns):
        return False
    steps = np.diff(sorted(zip(*columns, strict=True)), axis=0)
    together = np.all((steps >= 0).all(axis=0) | (steps <= 0).all(axis=0))
    return bool(together) and columns[0][runs.index(run)] in (min(columns[0]), max(columns[0]))
