"""The runs by which [tune] finds a value: successive halving, then the neighbours of the best value.

Values stand at places 0, 1, … of a grid, from the least to the largest. Every stage runs the values that are left for twice as
long as the one before, and the better half goes on; the last stage runs the best three for the whole run. Then the neighbours of
the best value run whole, beyond the ends of the grid too, until it has been compared with both.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mpi_compress.core.errors import UserError, placed
from mpi_compress.core.expressions import seconds
from mpi_compress.job.dotted import plain, text_of, with_values
from mpi_compress.job.runs import RunSpec, follows_rounds
from mpi_compress.job.tables import Tables
from mpi_compress.job.tuning import TuneTable
from mpi_compress.results.files import TRIALS
from mpi_compress.results.targets import Target, grows

_FREE = ("loss", "grad_norm", "squared_grad_norm")  # levels of [stop] for which nothing has to be solved
WHOLE = 1.0
LAST = 3  # values that the last stage runs whole
FURTHEST = 12  # places beyond an end of the grid that may be tried
MOST_HALVINGS = 3


class Stage(NamedTuple):
    """Trials of some length."""

    share: float  # of the run's length
    values: int  # that are run


class Rank(NamedTuple):
    """How good a value is; the least is the best. One that all seeds brought to the target is better than others."""

    missed: int  # problems on which some seed missed the target: one problem, where `on` names none
    took: float  # the median over seeds of what was paid to the target, the geometric mean over problems; 0.0 where one was missed
    merit: float  # the median over seeds of how near they came, and over problems; infinite for runs that diverged

    @property
    def is_hopeless(self) -> bool:
        return self.missed > 0 and self.merit == math.inf


NEVER = Rank(1_000, 0.0, math.inf)
"""The rank of a value that cannot be run, or whose trials diverged."""

Played = Mapping[tuple[int, float], Rank]
"""The trials so far, by place and share."""


class Answer(NamedTuple):
    """The value that won."""

    place: int
    settled: bool  # False: a better one may lie beyond the places that were tried


def rank_of(took: Sequence[float], merits: Sequence[float], problems: int = 1) -> Rank:
    """The rank of a value from what each trial paid to the target, infinite where it was missed, and from how near it came; the
    trials of a problem stand together."""
    paid, near = (np.median(np.reshape(each, (problems, -1)), axis=1) for each in (took, merits))
    missed = int(np.isinf(np.reshape(took, (problems, -1))).any(axis=1).sum())
    mean = 0.0 if missed else float(paid[0]) if problems == 1 else float(np.exp(np.mean(np.log(paid))))
    return Rank(missed, mean, float(np.median(near)))


def stages_of(count: int) -> list[Stage]:
    """The stages for so many values: 13 of an eighth of the run's length, 7 of a quarter, 4 of half of it, 3 of all of it."""
    halvings = min(MOST_HALVINGS, max(0, math.ceil(math.log2(count / LAST))))
    of_parts = [Stage(WHOLE / 2 ** (halvings - i), max(LAST, math.ceil(count / 2**i))) for i in range(halvings)]
    return [*of_parts, Stage(WHOLE, min(count, LAST))]


def wanted(count: int, is_ordered: bool, played: Played) -> list[tuple[int, float]]:
    """The trials to run next, by place and share; empty: the search is over.

    Args:
        count: of the values in the grid.
        is_ordered: False: their places mean nothing, so that none has neighbours.
    """
    left = list(range(count))
    for stage in stages_of(count):
        if missing := [(place, stage.share) for place in left[: stage.values] if (place, stage.share) not in played]:
            return missing
        ranked = sorted((played[place, stage.share], place) for place in left[: stage.values])
        left = [place for rank, place in ranked if not rank.is_hopeless]
    best = _best(played)
    if best is None or not is_ordered:
        return []
    tried = range(-FURTHEST, count + FURTHEST)
    return [(place, WHOLE) for place in (best - 1, best + 1) if place in tried and not _is_no_better(place, best, played)]


def answer(count: int, is_ordered: bool, played: Played) -> Answer | None:
    """What a search that is over has found; None: no value ended well."""
    if (best := _best(played)) is None:
        return None
    return Answer(best, not is_ordered or all(_is_no_better(place, best, played) for place in (best - 1, best + 1)))


def _best(played: Played) -> int | None:
    """The best place of those that ran whole."""
    whole = [(rank, place) for (place, share), rank in played.items() if share == WHOLE and not rank.is_hopeless]
    return min(whole)[1] if whole else None


def _is_no_better(place: int, best: int, played: Played) -> bool:
    """True if a value is known to be no better than the best one. It ran whole, or a shorter trial has diverged, or has reached
    the target: what it paid is the same in the whole run."""
    own, bar = {share: rank for (there, share), rank in played.items() if there == place}, played[best, WHOLE]
    return WHOLE in own or any(rank.is_hopeless or (not rank.missed and rank.took >= bar.took > 0) for rank in own.values())


def tune_of(spec: RunSpec) -> TuneTable:
    """The [tune] of a run that has one."""
    assert spec.tune is not None
    return spec.tune


def trials(spec: RunSpec, stage: int = 0) -> list[RunSpec]:
    """The trials of all values of the grid in a stage, the first one being 0; [] where there is no such stage."""
    grid = tune_of(spec).grid
    shares = [share for share, _ in stages_of(len(grid))[stage : stage + 1]]
    return [trial for share in shares for value in grid for trial in trials_of(spec, value, share)]


def trials_of(spec: RunSpec, value: Any, share: float) -> list[RunSpec]:
    """The trials of a value, for each problem one a seed, as long as this share of the run; the shorter ones end at the target."""
    tune = tune_of(spec)
    if tune.on is None:
        return _trials_of(spec, value, share)
    key = _as_trials_have_it(spec), text_of(value), share
    if key not in _SHARED:
        _SHARED[key] = _trials_of(spec, value, share)
    return _SHARED[key]


_SHARED: dict[tuple[str, str, float], list[RunSpec]] = {}
"""Trials on other problems than the run's own, which all runs of a grid have in common that differ in nothing else."""


_CHECKED: set[str] = set()


def forget_shared() -> None:
    """Forget what runs of the jobs before had in common: a plugin may have changed since."""
    _SHARED.clear()
    _CHECKED.clear()


def _as_trials_have_it(spec: RunSpec) -> str:
    """What a run has that its trials have too, as one text."""
    tune = tune_of(spec)
    set_by_trials = set.intersection(*map(set, tune.settings)) | ({"seed"} if tune.seeds is not None else set())
    written = with_values(spec.written, dict.fromkeys(set_by_trials))
    return text_of([written, str(spec.folder)])


def _trials_of(spec: RunSpec, value: Any, share: float, most: int | None = None) -> list[RunSpec]:
    """`trials_of`, with the first so many of the seeds."""
    tune = tune_of(spec)
    seeds = [{}] if tune.seeds is None else [{"seed": seed} for seed in tune.seeds[:most]]
    found, target = list[RunSpec](), tune.target(spec.rising)
    for setting in tune.settings:
        of_all = f"{spec.algorithm.name}, {tune.text(value)}, on {', '.join(map(plain, setting.values()))}"
        label = of_all if setting else label_of(spec, value)  # runs of a grid that differ in what is set here share their trials
        stop = dict(spec.written["stop"]) | {key[5:]: each for key, each in setting.items() if key.startswith("stop.")}
        shorter = {} if share == WHOLE else {"stop": _shortened(stop, share, target)}
        for seed in seeds:
            trial = spec.changed({**setting, **tune.put(value), **shorter, **seed}, label, without="tune")
            if shorter and "rounds" in stop and follows_rounds(trial):  # formulas have the rounds of the whole run in all stages
                trial = trial.changed({"stop": {"horizon": stop["rounds"], **shorter["stop"]}}, label)
            found.append(replace(trial, asked=frozenset([target.column])))
    return found


def label_of(spec: RunSpec, value: Any) -> str:
    """The label of the trials of a value on the run's own problem."""
    tune = tune_of(spec)
    return f"{spec.label.replace(f', by = {tune.by}', '')}, {tune.text(value)}"


def folder_of_trials(name: str, runs: Sequence[RunSpec]) -> str:
    """The name of the job of a job's trials; jobs in one folder share those that are not on their own data."""
    shared = any(spec.tune is not None and spec.tune.on is not None for spec in runs)
    return f"{(name.rpartition('/')[0] or name) if shared else name}/{TRIALS}"


def _shortened(stop: Tables, share: float, target: Target) -> Tables:
    """[stop] with a share of what may be spent, and the target as a level if it can be one."""
    found = dict(stop)
    for key, value in stop.items():
        if key == "rounds" or grows(key):
            budget = share * seconds(value)
            found[key] = max(1, math.ceil(budget)) if key == "rounds" else budget
    if target.column in (*_FREE, *stop) and not target.rising:
        found[target.column] = max(target.level, stop.get(target.column, -math.inf))
    return found


def possible(spec: RunSpec) -> list[RunSpec]:
    """All runs that may tune a run: those of all stages, and of all values beyond the grid."""
    tune = tune_of(spec)
    count, found = len(tune.grid), list[RunSpec]()
    for place in range(-FURTHEST, count + FURTHEST):
        with suppress(UserError):  # the parameter's own end
            for stage in stages_of(count) if 0 <= place < count else stages_of(count)[-1:]:
                found += [] if (value := tune.beyond(place)) is None else trials_of(spec, value, stage.share)
    return found


def check_trials(spec: RunSpec) -> None:
    """Refuse a value that cannot be tried before any is tried, and a suboptimality without f*."""
    tune = tune_of(spec)
    if tune.target().column == "suboptimality" and spec.objective.f_star == "skip":
        why = 'no trial has a suboptimality with objective.f_star = "skip"'
        raise UserError(f"{spec.where}tune.to: {why}; to = {{ squared_grad_norm = 1e-4 }} would do")
    with placed(f"{spec.where}tune: "):
        if (like := _as_trials_have_it(spec)) not in _CHECKED:
            for value in tune.grid:
                _trials_of(spec, value, stages_of(len(tune.grid))[0].share, most=1)
            _CHECKED.add(like)
