"""The runs by which [tune] finds a value."""

import math
from collections.abc import Mapping
from typing import Any

from mpi_compress.core.errors import UserError
from mpi_compress.core.expressions import seconds
from mpi_compress.job.dotted import plain
from mpi_compress.job.runs import RunSpec
from mpi_compress.job.stages import FURTHEST, WHOLE, stages_of
from mpi_compress.job.tables import BUDGETS
from mpi_compress.job.tuning import TuneTable
from mpi_compress.results.targets import Target

_FREE = ("loss", "grad_norm", "squared_grad_norm")  # levels of [stop] for which nothing has to be solved


def tune_of(spec: RunSpec) -> TuneTable:
    """The [tune] of a run that has one."""
    assert spec.tune is not None
    return spec.tune


def trials(spec: RunSpec) -> list[RunSpec]:
    """The runs that tune the parameter, for each value one, or one for each of its seeds; with a target the first stage's."""
    tune = tune_of(spec)
    if tune.target is not None:
        share = stages_of(len(tune.grid))[0].share
        return [trial for place in range(len(tune.grid)) for trial in trials_of(spec, tune.beyond(place), share)]
    label = f"{spec.label}, {tune.parameter} = "
    return [spec.changed(trial, label + plain(trial[tune.parameter]), without="tune") for trial in tune.trials]


def trials_of(spec: RunSpec, value: Any, share: float) -> list[RunSpec]:
    """The trials of a value, one for each seed, as long as this share of the run; the shorter ones end at the target."""
    tune = tune_of(spec)
    assert tune.target is not None
    stop = {} if share == WHOLE else {"stop": _shortened(spec.written["stop"], share, tune.target)}
    label = f"{spec.label}, {tune.parameter} = {plain(value)}"
    seeds = [{}] if tune.seeds is None else [{"seed": seed} for seed in tune.seeds]
    return [spec.changed({tune.parameter: value, **stop, **seed}, label, without="tune") for seed in seeds]


def _shortened(stop: Mapping[str, Any], share: float, target: Target) -> dict[str, Any]:
    """[stop] with a share of what may be spent, and the target as a level if it can be one."""
    found = dict(stop)
    for key in BUDGETS:
        if key in stop:
            budget = share * seconds(stop[key]) if key == "seconds" else share * stop[key]
            found[key] = max(1, math.ceil(budget)) if key == "rounds" else budget
    if target.column in (*_FREE, *stop) and not target.rising:
        found[target.column] = max(target.level, stop.get(target.column, -math.inf))
    return found


def possible(spec: RunSpec) -> list[RunSpec]:
    """All runs that may be played to tune a run: with a target those of all stages, and of all values beyond the grid."""
    tune = tune_of(spec)
    if tune.target is None:
        return trials(spec)
    count, found = len(tune.grid), list[RunSpec]()
    for place in range(-FURTHEST, count + FURTHEST):
        value = tune.beyond(place)
        if value is None:
            continue
        try:
            for stage in stages_of(count) if 0 <= place < count else stages_of(count)[-1:]:
                found += trials_of(spec, value, stage.share)
        except UserError:  # the parameter's own end
            continue
    return found


def check_trials(spec: RunSpec) -> None:
    """Refuse a value that cannot be tried before any is tried, and a gap to an f* that is not known."""
    tune = tune_of(spec)
    key, column = "merit" if tune.target is None else "to", tune.column
    if column == "suboptimality" and (spec.objective.f_star == "skip" or spec.log.evaluate is not None):
        why = f"log.evaluate = {spec.log.evaluate}" if spec.log.evaluate is not None else 'objective.f_star = "skip"'
        would_do = 'merit = "loss" or "squared_grad_norm"' if key == "merit" else "to = { squared_grad_norm = 1e-4 }"
        raise UserError(f"{spec.where}tune.{key}: no trial has a suboptimality with {why}; {would_do} would do")
    try:
        trials(spec)
    except UserError as error:
        raise UserError(f"{spec.where}tune: {error}") from None
