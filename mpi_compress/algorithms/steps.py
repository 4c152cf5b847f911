"""Step sizes γ_k: a number, a formula, a list of (round, value), or a decreasing form; k counts rounds from 0. And the formulas of
a part's parameters: what they name, and their values."""

import bisect
import itertools
import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import Field, dataclass, fields, replace
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, get_type_hints

from mpi_compress.algorithms.sampling import rounds_of_epoch
from mpi_compress.core.blame import place_of_class
from mpi_compress.core.errors import NotMet, UserError, nearest
from mpi_compress.core.expressions import Expression, evaluate, names_in
from mpi_compress.core.fields import Checked
from mpi_compress.core.registry import is_ours, with_inner
from mpi_compress.core.unknown import UNKNOWN, NotYetKnown, if_known

_FORMS = {"1/t": 1.0, "1/sqrt(t)": 0.5}
_WARM_UP = "warm-up"


@dataclass(frozen=True)
class Stepwise:
    """γ_k = the value of the last pair (round, value) with round ≤ k."""

    rounds: tuple[int, ...]  # increasing, the first one 0
    values: tuple[float, ...]

    def at(self, k: int) -> float:
        return self.values[bisect.bisect_right(self.rounds, k) - 1]


@dataclass(frozen=True)
class Decreasing:
    """γ_k = a / (b + k)^power: HT Theorem 9 iii is a = 4/µ, b = φ = 16 L/µ (1 + 2M/n), power 1."""

    a: float
    b: float
    power: float

    def at(self, k: int) -> float:
        return self.a / (self.b + k) ** self.power


@dataclass(frozen=True)
class WarmUp:
    """γ_k rises linearly from `start` to `a` at first, and is divided by `by` in each of `falls` (Goyal et al. 2017)."""

    a: float
    start: float
    rounds: int  # of the rise
    falls: tuple[int, ...]  # increasing
    by: float

    def at(self, k: int) -> float:
        risen = self.a if k >= self.rounds else self.start + (self.a - self.start) * k / self.rounds
        return risen / self.by ** bisect.bisect_right(self.falls, k)


Changing = Stepwise | Decreasing | WarmUp
Schedule = float | Changing


def step_at(step: Any, k: int) -> float:
    """γ_k of a step that `bind` returned; UserError if it is none, NotYetKnown if it has no value yet."""
    if isinstance(step, float):
        return step
    if step is UNKNOWN:
        raise NotYetKnown
    if not isinstance(step, Changing):
        raise UserError(f'step = {step!r} is no number; a class with steps has the field step: mc.Step = "1/L"')
    return step.at(k)


def bind(step: Any, numbers: Mapping[str, float]) -> Schedule:
    """A step as a job writes it, its formulas evaluated; ValueError: one has no value, or the step is not more than 0."""
    if isinstance(step, list):
        return Stepwise(tuple(int(k) for k, _ in step), tuple(_positive(v, numbers) for _, v in step))
    if isinstance(step, dict) and step["form"] == _WARM_UP:
        return _warm_up(step, numbers)
    if isinstance(step, dict):
        return Decreasing(_positive(step["a"], numbers), _positive(step.get("b", 1.0), numbers), _FORMS[step["form"]])
    return _positive(step, numbers)


def formulas_in(step: Any) -> list[Any]:
    """The numbers and formulas that a step is written with."""
    if isinstance(step, list):
        return [value for _, value in step]
    if isinstance(step, dict):
        return [step[key] for key in ("a", "b", "from") if key in step]
    return [step]


def _warm_up(step: Mapping[str, Any], numbers: Mapping[str, float]) -> WarmUp:
    a = _positive(step["a"], numbers)
    start = _positive(step["from"], numbers) if "from" in step else a
    rounds = rounds_of_epoch(numbers["N"], numbers["n"], numbers.get("batch"))
    falls = tuple(round(epochs * rounds) for epochs in step.get("falls", []))
    return WarmUp(a, start, round(step.get("over", 0) * rounds), falls, float(step.get("by", 10)))


def _positive(value: Any, numbers: Mapping[str, float]) -> float:
    number = evaluate(value, numbers)
    if not number > 0:
        given = f"'{value}' = {number:g}" if isinstance(value, str) else f"{number:g}"
        raise ValueError(f"step = {given} must be more than 0")
    return number


def _checked(step: Any) -> Any:
    if isinstance(step, list):
        pairs = [p for p in step if isinstance(p, list) and len(p) == 2 and type(p[0]) is int]
        if not step or len(pairs) < len(step) or pairs[0][0] != 0 or any(a[0] >= b[0] for a, b in itertools.pairwise(pairs)):
            raise ValueError('pairs of a round and a value, the rounds increasing from 0: [[0, "1/L"], [500, "0.1/L"]]')
    if isinstance(step, dict) and step.get("form") == _WARM_UP:
        _check_warm_up(step)
    elif isinstance(step, dict) and (step.get("form") not in list(_FORMS) or "a" not in step or set(step) - {"form", "a", "b"}):
        raise ValueError(
            '{ form = "1/t" or "1/sqrt(t)", a = …, b = … }, which is a/(b + k) or a/sqrt(b + k) in round k; b = 1 if not given; or '
            '{ form = "warm-up", … }'
        )
    for value in formulas_in(step):
        if not _is_number_or_formula(value):
            raise ValueError(f'numbers or formulas, such as "1/L", and not {value!r}')
    return step


def _is_number_or_formula(value: Any) -> bool:
    if isinstance(value, str):
        try:
            names_in(value)
        except ValueError:
            return False
        return True
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _check_warm_up(step: Mapping[str, Any]) -> None:
    over, falls, by = step.get("over", 0), step.get("falls", []), step.get("by", 10)
    numbers: list[Any] = [over, *falls, by] if isinstance(falls, list) else [None]
    known = set(step) <= {"form", "a", "from", "over", "falls", "by"} and "a" in step and ("from" in step) == ("over" in step)
    if not known or any(type(n) not in (int, float) or not 0 <= n < math.inf for n in numbers) or falls != sorted(falls) or by <= 1:
        raise ValueError(
            '{ form = "warm-up", a = …, from = …, over = 5, falls = [150, 250], by = 10 }: γ rises from `from` to a in 5 epochs, '
            "and is divided by 10 after 150 and 250; leave out from and over for no rise"
        )


Step = Annotated[float | str | list[Any] | dict[str, Any], Checked(_checked)]
"""A step size: a number or formula, pairs [[round, value], …], { form = "1/t" | "1/sqrt(t)", a = …, b = … }, or
{ form = "warm-up", a = …, from = …, over = …, falls = […], by = … }."""

_KINDS = {"omega": "an unbiased compressor", "delta": "a compressor that is a contraction"}
_INSTEAD = {"omega": ", or ef21 with a contraction such as top-k"}
THEORY, TIGHT = "theory", "tight"
"""In formulas: the step of the method's theorem, and that of a tight analysis."""

_δ = "the δ of a contraction", "top-k"
_ω = "the ω of a bounded variance without bias", "natural or random-k"
OF_COMPRESSORS = {"delta": ("up", _δ), "omega": ("up", _ω), "delta_down": ("down", _δ), "omega_down": ("down", _ω)}
"""Quantities that a compressor states: the direction of its link, what they are, and what has one."""


def of_compressor(method: Any, name: str) -> Any:
    """Such a quantity of a bound method; None where the compressor states none."""
    link = getattr(method, OF_COMPRESSORS[name][0])
    return getattr(link.compressor, name.removesuffix("_down"))(method.setting.dim)


_CONTRACTIVE = {"levels": range(1, 2**31), "scaled": [False], "shrunk": [True]}  # values of parameters, the largest δ last


def as_contraction(compressor: Any, dim: int) -> str:
    """A compressor with the first value of a parameter for which it is a contraction, as "qsgd with levels = 9"; "" for none."""

    def first(key: str, values: Sequence[Any]) -> str:
        place = bisect.bisect_right(values, 0.0, key=lambda value: replace(compressor, **{key: value}).delta(dim) or 0.0)
        return f"{compressor.name} with {key} = {str(values[place]).lower()}" if place < len(values) else ""

    return next((first(key, values) for key, values in _CONTRACTIVE.items() if hasattr(compressor, key)), "")


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


def theorems_of(method: Any) -> Mapping[str, str]:
    """The formulas of the step sizes that theorems give a method, by their names in formulas."""
    return {name: formula for name, formula in ((THEORY, method.theory), (TIGHT, method.theorem.tight)) if formula}


def names_of(value: Any, theorems: Mapping[str, str]) -> set[str]:
    """The quantities that a parameter's formulas name, those of a theoretical step size in place of its name."""
    named = {name for formula in formulas_in(value) for name in names_in(formula)}
    return named.union(*(names_in(theorems[name]) for name in named & theorems.keys())) - theorems.keys()


def named_by(method: Any) -> set[str]:
    """The quantities that the formulas of a declared method name, those of the parts inside it, and those of its needs."""
    found = {name for need in method.needs for name in need.of}
    for part in with_inner((method,)):
        theorems = theorems_of(method) if part is method else {}
        found = found.union(*(names_of(getattr(part, key), theorems) for key in formulas_of(type(part))))
    return found


def takes_theorem_step(method: Any) -> bool:
    """True if the step of a declared method is a theorem's, or a multiple of it."""
    theorems = theorems_of(method)
    return any(str(formula) in theorems.values() or names_in(formula) & theorems.keys() for formula in formulas_in(method.step))


def evaluated(
    key: str, value: Any, is_step: bool, numbers: Mapping[str, float], theorems: Mapping[str, str], part: Any = None
) -> Schedule:
    """The value of a parameter that is a number, a formula or a schedule.

    Args:
        key: the parameter, for errors.
        numbers: what formulas may name.
        theorems: the formulas of the step sizes that the method states, by THEORY and TIGHT.
        part: the method, or the part of one, whose class states the value; None: a job does.

    Raises:
        NotMet: a compressor or a method that does not state what the formula names.
        ValueError: a formula without a value.
    """
    named, known = names_of(value, theorems), {*numbers, *COMPUTED_WHERE_NAMED}
    for name in named - known - OF_COMPRESSORS.keys() - {THEORY, TIGHT}:
        raise ValueError(nearest(name, known, "quantity"))
    for name in named & OF_COMPRESSORS.keys() - numbers.keys():
        way, (what, such) = OF_COMPRESSORS[name]
        if part is not None:
            would_do = f"{such} would do{_INSTEAD.get(name, '')}"
            link = getattr(part, way, None)
            if link is not None and not is_ours(link.compressor):
                would_do += f"; {link.compressor.name} states none: define {name[:5]}(self, dim), or give algorithm.{key} a number"
            elif link is not None and name[:5] == "delta" and (other := as_contraction(link.compressor, link.dim)):
                would_do = f"{such}, or {other}, would do"
            raise NotMet(f"{part.name} needs {_KINDS[name[:5]]} {way}: {would_do}")
        raise NotMet(f"{key} = '{value}' needs {what}, such as {such}, and the {way}link's compressor states none")
    if named & {THEORY, TIGHT}:
        tight = ", or no tight one: ef and ef21 do" if TIGHT in named else ""
        raise NotMet(f"{key} = '{value}' names the step of a theorem, and this method states none{tight}")
    numbers = {**numbers, **{name: evaluate(theorems[name], numbers) for name in names_of(value, {}) & theorems.keys()}}
    return bind(value, numbers) if is_step else evaluate(value, numbers)


def _refuse_untyped(part: Any, named: Set[str]) -> None:
    """ValueError if formulas name a field of a user's class that is no formula itself."""
    for each in fields(part) if not is_ours(part) else ():
        if each.name in named and each not in _formulas(part.__class__):
            kind = getattr(each.type, "__name__", each.type)
            which = f"'{each.name}' is a field of {type(part).__name__} of the type {kind}"
            raise ValueError(f"{which}; formulas may name fields of the type mc.Expression{place_of_class(type(part))}")


def values_of(part: Any, numbers: Mapping[str, float], theorems: Mapping[str, str] = MappingProxyType({})) -> dict[str, Schedule]:
    """The values of a part's formulas, as `evaluated` raises and takes them. A parameter may name others."""
    given = {f.name: (getattr(part, f.name), is_step) for f, is_step in _formulas(part.__class__).items()}
    own = {f.name for f in _formulas(part.__class__) if getattr(part, f.name) == f.default}
    formulas = {key: (value, is_step) for key, (value, is_step) in given.items() if value is not None}
    _refuse_untyped(part, {name for value, _ in formulas.values() for name in names_of(value, theorems)} - numbers.keys())
    values: dict[str, Schedule] = {}
    while formulas:
        ready = (key for key, (value, _) in formulas.items() if not names_of(value, theorems) & formulas.keys() - {key})
        key = next(ready, next(iter(formulas)))
        known = {**{name: value for name, value in values.items() if not isinstance(value, Changing)}, **numbers}
        values[key] = if_known(evaluated, key, *formulas.pop(key), known, theorems, part if key in own else None)
    return values
