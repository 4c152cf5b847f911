"""The formulas of a method's parameters: what they name, and their values."""

from collections.abc import Mapping
from dataclasses import Field, fields
from difflib import get_close_matches
from functools import cache
from typing import Any, get_type_hints

from mpi_compress.algorithms.steps import Schedule, Step, bind, formulas_in
from mpi_compress.core.errors import NotMet, nearest
from mpi_compress.core.expressions import Expression, evaluate, names_in

THEORY = "theory"
"""In formulas: the step of the method's theorem."""

_δ = "the δ of a contraction", "such as top-k"
_ω = "the ω of a bounded variance without bias", "such as natural or random-k"
OF_COMPRESSORS = {"delta": ("up", _δ), "omega": ("up", _ω), "delta_down": ("down", _δ), "omega_down": ("down", _ω)}
"""Quantities that a compressor states: the direction of its link, what they are, and what has one."""

COMPUTED_WHERE_NAMED = ("L_max", "L_mean", "L_rms", "L_pm", "L_row", "g0")
"""Quantities that are known only in a run whose formulas name them."""


def formulas_of(cls: Any) -> dict[str, bool]:
    """The parameters of a part that may be formulas; True for those that are steps."""
    return {f.name: is_step for f, is_step in _formulas(cls).items() if f.init}


@cache
def _formulas(cls: Any) -> dict[Field[Any], bool]:
    hints = get_type_hints(cls, include_extras=True)
    kinds: dict[Any, bool] = {Expression: False, Expression | None: False, Step: True, Step | None: True}
    return {f: kinds[hints[f.name]] for f in fields(cls) if hints[f.name] in kinds}


def names_of(value: Any, theory: str) -> set[str]:
    """The quantities that a parameter's formulas name, those of the theorem's step in place of its name."""
    named = {name for formula in formulas_in(value) for name in names_in(formula)}
    return named - {THEORY} | names_in(theory) if THEORY in named and theory else named


def settled(key: str, value: Any, is_step: bool, numbers: Mapping[str, float], theory: str) -> Schedule:
    """The value of a parameter that is a number, a formula or a schedule.

    Args:
        key: the parameter, for errors.
        numbers: what formulas may name.
        theory: the theorem's step as a formula; "": the method states none.

    Raises:
        NotMet: a compressor or a method that does not state what the formula names.
        ValueError: a formula without a value.
    """
    named, known = names_of(value, theory), {*numbers, *COMPUTED_WHERE_NAMED}
    for name in named - known:
        if get_close_matches(name, COMPUTED_WHERE_NAMED):
            raise ValueError(nearest(name, known, "quantity"))
    for name in named & OF_COMPRESSORS.keys() - numbers.keys():
        way, (what, such) = OF_COMPRESSORS[name]
        raise NotMet(f"{key} = '{value}' needs {what} and the {way}link's compressor states none; one with it is wanted, {such}")
    if THEORY in names_of(value, ""):
        if not theory:
            raise NotMet(f"{key} = '{value}' names the step of a theorem, and this method states none")
        numbers = {**numbers, THEORY: evaluate(theory, numbers)}
    return bind(value, numbers) if is_step else evaluate(value, numbers)


def values_of(part: Any, numbers: Mapping[str, float], theory: str = "") -> dict[str, Schedule]:
    """The values of a part's formulas, as `settled` raises and takes them. A parameter may name others, a step all of them."""
    given = {f.name: (getattr(part, f.name), is_step) for f, is_step in _formulas(part.__class__).items()}
    formulas = {key: (value, is_step) for key, (value, is_step) in given.items() if value is not None}
    named = {key: names_of(value, theory) for key, (value, _) in formulas.items()}
    values: dict[str, Schedule] = {}
    for key in sorted(formulas, key=lambda key: (formulas[key][1], bool(named[key] & formulas.keys()))):
        known = {**{name: value for name, value in values.items() if isinstance(value, float)}, **numbers}
        values[key] = settled(key, *formulas[key], known, theory)
    return values
