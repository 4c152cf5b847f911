"""[tune]: a parameter, or several at once, get the best of some values, by trial runs of each.

The best value reaches a target with the least of `by`: trials are as long as the run, and run in stages.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from mpi_compress.core.errors import UserError
from mpi_compress.core.expressions import evaluate, names_in
from mpi_compress.core.fields import parameters
from mpi_compress.job.dotted import combined, leaves, no_key_of_a_run, plain, refuse_unknown
from mpi_compress.job.tables import Tables
from mpi_compress.results.targets import Target, goal, grows
from mpi_compress.results.tuning import in_words, sizes

_MOST = 64  # values of a range of powers
_RANGE = re.compile(r"\s*(\d+)\s*\^\s*([+-]?\d+)\s*\.\.\s*(?:(\d+)\s*\^\s*)?([+-]?\d+)(?:\s+(\S.*?))?\s*")


def powers(text: str) -> list[Any]:
    """The formulas of a range of powers: "2^-1..2^1 theory" is "1/2 theory", "theory", "2 theory"; the numbers of "2^-1..2^1".
    ValueError if it is none of up to 64."""
    found = _RANGE.fullmatch(text)
    if found is None or found[3] not in (None, found[1]):
        raise ValueError(f'values = {text!r} should be a list, or a range of powers of one number such as "2^-6..2^10 theory"')
    base, low, high, unit = int(found[1]), int(found[2]), int(found[4]), found[5]
    if base < 2 or not 0 <= high - low < _MOST:
        raise ValueError(f"values = {text!r} should be from 1 to {_MOST} powers of 2 or more, the least first")
    if unit is None:
        return [base**j for j in range(low, high + 1)]
    names_in(unit)  # refuses what is no formula
    unit = unit if unit.isidentifier() else f"({unit})"
    return [f"{Fraction(base) ** j} {unit}" if j else unit for j in range(low, high + 1)]


Settings = list[Tables] | Tables
"""Tables of values by dotted key; or for each key a list of values, of which all combinations are meant."""


def combinations(given: Settings, what: str) -> list[Tables]:
    """The tables of `Settings`, each by dotted key; ValueError for a key that is no table of a run, or a value that is no list."""
    if isinstance(given, list):
        found: list[Tables] = [dict(leaves(each, parts=True)) for each in given]
    else:
        axes = dict(leaves(given, parts=True))
        if wrong := [key for key, values in axes.items() if not isinstance(values, list) or not values]:
            raise ValueError(f"{what}: {wrong[0]} = {axes[wrong[0]]!r} should be a list of values; or write a list of tables")
        found = [*combined(axes)]
    for key in (key for each in found for key in each):
        if why := no_key_of_a_run(key, but="tune"):
            raise ValueError(f"{what}: {why}")
    return found


@dataclass(frozen=True)
class TuneTable:
    """A job's [tune]."""

    parameter: str = ""  # its dotted key, such as "algorithm.step"
    values: list[Any] | str = ""  # or a range of powers, "2^-6..2^10 theory"
    candidates: Settings | None = None  # in place of both: values of several parameters at once
    draw: int | None = None  # so many of the candidates, drawn without replacement, alike in all runs; None: all of them
    to: dict[str, float] = field(default_factory=dict)  # the target, such as { squared_grad_norm = 1e-4 }
    by: str = "wire_bits_up"  # the column in which `to` is paid
    seeds: list[int] | None = None  # each value is tried with each of these, and the median counts; None: the run's own
    on: Settings | None = None  # the problems: what trials set in place of the run's own, such as other data; None: the run's
    beside: float | str | None = None  # a value, such as "theory", that a further run has without tuning; None: no such run

    def __post_init__(self) -> None:
        several = self.candidates is not None
        given, seeds = "candidates" if several else "values", self.seeds
        are_wrong = seeds is not None and (not seeds or min(seeds) < 0 or len(set(seeds)) < len(seeds))
        for wrong, why in (
            (several == bool(self.parameter or self.values), "parameter and values, or candidates in place of both, are required"),
            (not several and not self.parameter, "parameter is missing: the dotted key of what is tuned, such as algorithm.step"),
            (not several and self.values == "", "values are missing: a list, or a range of powers"),
            (not several and no_key_of_a_run(self.parameter), no_key_of_a_run(self.parameter)),
            (several and self.beside is not None, "beside goes with one parameter; write a run of its own"),
            (not several and self.draw is not None, "draw goes with candidates"),
            (len(self.grid) < 2, f"{given} = {self.grid} should be two or more"),
            (self.on is not None and not all(self.settings or [{}]), "on names nothing that trials set"),
            (are_wrong, f"seeds = {seeds} should be different whole numbers from 0 on"),
            (not grows(self.by), f"by = {self.by!r} should be a column that grows in every run, such as wire_bits_up or seconds"),
        ):
            if wrong:
                raise ValueError(why)
        self.target()  # refuses what is none

    @cached_property
    def grid(self) -> list[Any]:
        """The values to try, a range of powers written out; of several parameters, their values by dotted key."""
        if self.candidates is None:
            return powers(self.values) if isinstance(self.values, str) else self.values
        found = combinations(self.candidates, "candidates")
        if self.draw is None:
            return found
        if not 1 <= self.draw <= len(found):
            raise ValueError(f"draw = {self.draw} should be from 1 to the {len(found)} candidates")
        return [found[i] for i in sorted(np.random.default_rng(0).choice(len(found), self.draw, replace=False))]

    @cached_property
    def settings(self) -> list[Tables]:
        """What trials set beside a value, by dotted key: a table for each problem of `on`; one empty table without `on`."""
        return [{}] if self.on is None else combinations(self.on, "on")

    def put(self, value: Any) -> Tables:
        """A value of the grid by dotted key."""
        return value if self.candidates is not None else {self.parameter: value}

    def text(self, value: Any) -> str:
        """A value as labels have it: "algorithm.step = 2 theory"."""
        return in_words(value) if self.candidates is not None else f"{self.parameter} = {plain(value)}"

    def target(self, rising: Collection[str] = ()) -> Target:
        """What trials should reach; `rising`: columns of the run's metrics that rise."""
        return goal(self.to, rising)

    def beyond(self, place: int) -> Any:
        """The value at a place of the grid from the least to the largest, also before 0 and after its last one. Those go on by the
        factor of the two at that end. None: there is none, as below 0 or among values without an order."""
        found = sizes(self.grid)
        order = sorted(range(len(self.grid)), key=found.__getitem__ if found else None)
        if 0 <= place < len(order):
            return self.grid[order[place]]
        if not found:
            return None
        end, other = order[:2] if place < 0 else order[:-3:-1]
        steps = max(-place, place - len(order) + 1)
        if 0 in (found[end], found[other]) or abs(found[end]) == abs(found[other]):
            return None
        return scaled(self.grid[end], (found[end] / found[other]) ** steps)

    @property
    def known_as(self) -> str:
        """The parameter, or the candidates' keys."""
        return ", ".join(self.keys)

    @property
    def keys(self) -> list[str]:
        """The dotted keys of what is tuned."""
        return [self.parameter] if self.parameter else [*dict.fromkeys(key for each in self.grid for key in each)]


_PRODUCT = re.compile(r"(?:(\d+(?:/\d+)?) )?(\(.*\)|[A-Za-z_]\w*)")


def scaled(value: Any, factor: float) -> Any:
    """A number, a share or a formula times a factor: "2 theory" times 2 is "4 theory"."""
    if isinstance(value, str) and value.endswith("%"):
        return f"{float(value[:-1]) * factor:.12g}%"
    if not isinstance(value, str):
        product = float(f"{value * factor:.12g}")
        return round(product) if isinstance(value, int) and product >= 1 else product
    exact, found = Fraction(factor).limit_denominator(10**9), _PRODUCT.fullmatch(value)
    text = f"{factor:.12g} ({value})"
    if found:
        share = Fraction(found[1] or 1) * exact
        if share.numerator == 1 or share.denominator == 1:
            short = f"{share} " * (share != 1) + found[2]
            ones = dict.fromkeys(names_in(value), 1.0)
            text = short if abs(evaluate(short, ones) / evaluate(text, ones) - 1) < 1e-9 else text
    return text


def for_the_question(run: Tables, figure: Any, grid: Tables) -> Tables:
    """A run's tables; its [tune] gets the target of [figure] or [stop] in place of their name, and all seeds of [grid]."""
    tune = run.get("tune")
    if not isinstance(tune, Mapping):
        return run
    refuse_unknown(tune, parameters(TuneTable), "tune")
    asked = dict(tune)
    if (to := tune.get("to", "stop")) == "figure":
        asked |= _target_of_figure(figure, tune)
    elif to == "stop":
        asked["to"] = _target_of_stop(run.get("stop"))
    elif isinstance(to, str):
        raise UserError(f'tune.to: {to!r} was given; write to = {{ test_accuracy = 0.9 }}, "figure" or "stop"')
    if "seeds" not in tune and isinstance(seeds := grid.get("seed"), list):
        asked["seeds"] = seeds
    return {**run, "tune": asked}


def untuned(values: Tables) -> Tables:
    """Tables, or values by dotted key, without those of [tune]."""
    return {key: value for key, value in values.items() if key.partition(".")[0] != "tune"}


def _target_of_figure(figure: Any, tune: Tables) -> Tables:
    given = figure if isinstance(figure, Mapping) else {}
    to, paid = (given["to"], given.get("by")) if "to" in given else (given.get("at"), given.get("y", given.get("by")))
    if not to:
        raise UserError('tune.to = "figure": [figure] has no target; to = { squared_grad_norm = 1e-4 } there, or here, would do')
    return {"to": to, **({"by": paid} if paid and "by" not in tune else {})}


def _target_of_stop(stop: Any) -> Tables:
    given = stop if isinstance(stop, Mapping) else {}
    no_level = "rounds", "horizon", "diverged"
    levels = {key: v for key, v in given.items() if not (key in no_level or grows(key) or isinstance(v, Mapping))}
    if len(levels) != 1:
        would_do = "to = { squared_grad_norm = 1e-4 } would do"
        raise UserError(f"tune.to is left out, and [stop] has {len(levels)} targets, where one is required; {would_do}")
    return levels
