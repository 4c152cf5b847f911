"""[tune]: runs trials until each run has the value that it goes on with."""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mpi_compress.core.errors import UserError
from mpi_compress.core.progress import count_text, print_line
from mpi_compress.core.signals import Interrupted, Stopped
from mpi_compress.engine.request import Request
from mpi_compress.job import trials
from mpi_compress.job.loading import Job
from mpi_compress.job.runs import RunSpec
from mpi_compress.job.trials import Rank, tune_of
from mpi_compress.preparing.problems import Problem
from mpi_compress.preparing.runs import prepare
from mpi_compress.results.files import result_file
from mpi_compress.results.reader import COPY_OF, Run, Runs
from mpi_compress.results.tuning import BEYOND, caveat, in_words, sizes

Play = Callable[[Job, Request], Runs]
"""Executes the runs of a job; the results at rank 0."""

Wins = dict[int, Mapping[str, Any]]
"""What was found, by number of run, as results keep it."""


def tune(job: Job, specs: dict[int, RunSpec], request: Request, play: Play) -> Wins:
    """Run the trials of the runs that have a [tune], and put the best values into `specs`."""
    trying = _Trying(job, replace(request, shared=True, on_row=None), play)
    tuned = {i: spec for i, spec in specs.items() if spec.tune is not None}
    try:
        wins = _found(tuned, trying)
    except Interrupted as interrupted:
        interrupted.when = f"between trials, {trying.kept}"
        raise
    specs.update({i: spec.as_played(wins[i]) for i, spec in tuned.items()})
    if request.tells:
        for line in dict.fromkeys(_found_in_words(spec.label, trying.counts[i], wins[i]) for i, spec in tuned.items()):
            print_line(line)
    return wins


def _found_in_words(label: str, count: int, tuned: Mapping[str, Any]) -> str:
    """What a method's trials found, in a line."""
    value = re.sub(r"(?<=\d) theory", " × theory", in_words(tuned["value"]))
    note, beyond = caveat(tuned), f"; {BEYOND}" * (not tuned["settled"])
    return f"{label}: {count_text(count, 'trial')}, best {value}" + f", {note}{beyond}" * bool(note)


@dataclass(frozen=True)
class _Trying:
    """Runs trials; runs of several seeds share them."""

    job: Job
    request: Request
    play: Play
    counts: Counter[int] = field(default_factory=Counter)  # trials that were executed, by number of run; at rank 0
    files: set[Path] = field(default_factory=set)  # of their results

    def results(self, asked: Mapping[int, list[RunSpec]], by: Mapping[int, RunSpec]) -> dict[int, list[Run]]:
        """The results of the trials that runs ask for, `by` number, in their order; at rank 0."""
        different = {id(trial): trial for each in asked.values() for trial in each}  # runs that share trials have the same objects
        written = {key: trial.toml() for key, trial in different.items()}
        those = {written[key]: trial for key, trial in different.items()}
        job = replace(self.job, name=trials.folder_of_trials(self.job.name, [*by.values()]), runs=[*those.values()])
        self.files.update(result_file(job.name, trial.label, trial.run_id, self.request.out) for trial in job.runs)
        try:
            found = dict(zip(those, self.play(job, self.request), strict=False))
        except Stopped as stopped:
            raise Stopped(f"{stopped}; {self.kept}") from None
        asked = asked if self.request.ranks.is_root else {}
        of_each = {i: [found[written[id(trial)]] for trial in each] for i, each in asked.items()}
        self.counts.update({i: sum(COPY_OF not in run.attrs for run in each) for i, each in of_each.items()})
        return of_each

    @property
    def kept(self) -> str:
        """How many trials are done."""
        return f"{count_text(sum(file.exists() for file in self.files), 'trial')} of [tune] done and kept"


def _found(specs: Mapping[int, RunSpec], trying: _Trying) -> Wins:
    """Find for each run the value that reaches its target with the least, in stages."""
    ranks, problems = trying.request.ranks, dict[str, Problem]()
    searches = {i: _Search(spec) for i, spec in specs.items()}
    while asked := ranks.on_root(lambda: {i: places for i, search in searches.items() if (places := search.wanted())}):
        for i, places in asked.items():
            for place, share in [*places]:
                if not searches[i].can_be_prepared(place, trying.request, problems):
                    places.remove((place, share))
                    searches[i].ran[place, share] = trials.NEVER
        found = trying.results({i: searches[i].trials(places) for i, places in asked.items()}, specs)
        ranks.on_root(partial(_note, searches, asked, found))
    return {i: ranks.on_root(search.found) for i, search in searches.items()}


def _note(searches: "Mapping[int, _Search]", asked: Mapping[int, list[tuple[int, float]]], found: Mapping[int, list[Run]]) -> None:
    for i, runs in found.items():
        searches[i].note(asked[i], runs)


@dataclass
class _Search:
    """The search for one run's value. What was tried is known at rank 0."""

    spec: RunSpec
    ran: dict[tuple[int, float], Rank] = field(default_factory=dict)  # by place in the grid, and share of the run's length
    paid: dict[int, list[float]] = field(default_factory=dict)  # by place, in the last trials; infinite where missed

    def __post_init__(self) -> None:
        self.table = tune_of(self.spec)
        self.target = self.table.target(self.spec.rising)
        self.count, self.is_ordered = len(self.table.grid), bool(sizes(self.table.grid))

    def wanted(self) -> list[tuple[int, float]]:
        """What is to run next, by place and share; places without a value are noted as such."""
        while places := trials.wanted(self.count, self.is_ordered, self.ran):
            none = [place for place in places if self.table.beyond(place[0]) is None]
            if not none:
                break
            self.ran.update(dict.fromkeys(none, trials.NEVER))
        return places

    def can_be_prepared(self, place: int, request: Request, problems: dict[str, Problem]) -> bool:
        """False for a value beyond the grid that is refused: the parameter ends there. All ranks call it together."""
        if 0 <= place < self.count:
            return True
        try:
            prepare(self.trials([(place, trials.WHOLE)])[0], request.ranks, problems, True, request.force)
        except UserError:
            return False
        return True

    def trials(self, places: Sequence[tuple[int, float]]) -> list[RunSpec]:
        return [trial for place, share in places for trial in trials.trials_of(self.spec, self.table.beyond(place), share)]

    def note(self, places: Sequence[tuple[int, float]], runs: Sequence[Run]) -> None:
        """Take note of the trials' results, those of each place together."""
        each, problems = len(runs) // max(1, len(places)), len(self.table.settings)
        for number, place in enumerate(places):
            took, merits = zip(*map(self._outcome, runs[number * each : (number + 1) * each]), strict=True)
            self.paid[place[0]] = [*took]
            self.ran[place] = rank = trials.rank_of(took, merits, problems)
            if self.table.on is not None and not rank.missed:  # what it paid is the same in longer trials
                self.ran |= {(place[0], stage.share): rank for stage in trials.stages_of(self.count) if stage.share > place[1]}

    def _outcome(self, run: Run) -> tuple[float, float]:
        """What a trial paid to the target, infinite if it was missed; and how near it came, infinite if it ended badly."""
        target = self.target
        if run.status != "complete" or (loss := run.trace["loss"])[-1] > loss[0] or target.is_unknown(run):
            return math.inf, math.inf
        values = run.column(target.column)
        nearest_value = -np.nanmax(values) if target.rising else np.nanmin(values)
        return target.took(run, self.table.by), float(nearest_value)

    def found(self) -> Mapping[str, Any]:
        """The value that won, what was tried, and whether a better one may lie beyond."""
        table, target = self.table, self.target
        won = trials.answer(self.count, self.is_ordered, self.ran)
        if won is None:
            below = "at a finite loss, and no higher than it starts"
            raise UserError(f"{self.spec.where}tune: no value of {table.known_as} gives a run that ends {below}")
        longest = dict(sorted(self.ran))  # by place, its longest share
        tried = {place: self.ran[place, share] for place, share in longest.items() if table.beyond(place) is not None}
        sign = -1.0 if target.rising else 1.0
        return {
            "parameter": table.known_as, "value": table.beyond(won.place), "settled": won.settled,
            "merit": target.column, "tried": [[table.beyond(place), sign * rank.merit] for place, rank in tried.items()],
            "to": str(target), "by": table.by, "took": [None if rank.missed else rank.took for rank in tried.values()],
            "paid": [[None if math.isinf(each) else each for each in self.paid.get(place, [])] for place in tried],
            "share": [longest[place] for place in tried], "seeds": table.seeds or [self.spec.seed],
        }  # fmt: skip
