"""What users' classes of parts state: it takes effect, or is refused as they are registered and built.

A bare attribute with the name of a parameter is its new default; a class variable such as `curvature = 1.0` has a type; a name that
is nearly one of the contract would say nothing.
"""

from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import MISSING, Field, field, fields, is_dataclass
from difflib import SequenceMatcher
from functools import cache, partial
from inspect import get_annotations, isfunction
from types import CodeType, MethodType
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

import numpy as np

from mpi_compress.core.blame import function_of, is_ours, place_in_part, place_of, place_of_class
from mpi_compress.core.errors import UserError
from mpi_compress.core.fields import as_type

_NEAR = 0.75  # of letters in common: worker_send and worker_sends have 0.96, stpe and step 0.75, start_worker and start_master 0.58


def state_parameters(cls: Any) -> None:
    """Let the bare attributes of a user's class that have names of parameters be these parameters' new defaults."""
    known, found, typed = _parameters(cls), dict[str, Any](), get_annotations(cls)
    for each in cls.__mro__:
        if not is_ours(each) and (each is cls or "__dataclass_fields__" not in vars(each)):
            typed_there = typed.keys() | (get_annotations(each).keys() - vars(each).get("_bare", ()))
            names = known.keys() - typed_there
            found = {name: value for name, value in vars(each).items() if name in names and _is_value(value)} | found
    for name, value in found.items():
        keyword = known[name][1]
        if isinstance(value, list | dict):
            setattr(cls, name, field(default_factory=partial(deepcopy, value), kw_only=keyword))
        elif keyword:
            setattr(cls, name, value if isinstance(value, Field) else field(default=value, kw_only=True))
    cls._bare = {*found}  # annotated below, and by nobody else
    cls.__annotations__ = typed | {name: known[name][0] for name in found}


def _is_value(given: Any) -> bool:
    return not (callable(given) or hasattr(given, "__get__"))


def stated_defaults(cls: Any) -> dict[str, Any]:
    """The defaults of parameters of the contract that users' classes state, which are checked as a job's values are."""
    known, at = _parameters(cls), vars(cls).get("__dataclass_fields__", {})
    own = {name for each in cls.__mro__ if not is_ours(each) for name in get_annotations(each)}
    found = {name: at[name] for name in own & known.keys() & at.keys()}
    values = {n: each.default if each.default_factory is MISSING else each.default_factory() for n, each in found.items()}
    return {name: value for name, value in values.items() if value is not MISSING and value is not None}


def _parameters(cls: Any) -> dict[str, tuple[Any, bool]]:
    """The parameters that the bases of this package have: the type of each, and whether it is given by its name alone."""
    found: dict[str, tuple[Any, bool]] = {}
    for each in reversed([each for each in cls.__mro__ if is_ours(each)]):
        with suppress(NameError):  # a type that only checkers of types import
            at = {each.name: each.kw_only is True for each in fields(each)} if is_dataclass(each) else {}
            for name, hint in get_type_hints(each, include_extras=True).items():
                if name in at or (get_origin(hint) is not ClassVar and hasattr(each, name)):
                    found[name] = hint, at.get(name, True)
    return found


def refuse_wrong_facts(part: Any, where: str) -> None:
    """Compare what a user's part states with the types of its contract; a property counts by what it returns. UserError if a method
    is in the place of a value, or a value has another type or is out of range."""
    cls: Any = type(part)
    for name, hint in _stated(cls).items():
        try:
            value = getattr(part, name, None)
        except ArithmeticError as error:
            raise UserError(f"{where}: '{part.name}': {name}: {error}{place_in_part(error)}") from None
        if isinstance(value, MethodType):
            raise UserError(f"{where}: '{part.name}': {name} is a method; it should be a value, or a @property{place_of(value)}")
        try:
            if hasattr(part, name):
                as_type(value.item() if isinstance(value, np.generic) else value, hint)
        except ValueError as error:
            given = f"{name} = {value!r} was given; it should be {error}"
            raise UserError(f"{where}: '{part.name}': {given}{place_of_class(cls)}") from None


@cache
def _stated(cls: Any) -> dict[str, Any]:
    """The class variables of a part's contract that classes of users define, with their types."""
    ours = [each for each in cls.__mro__ if is_ours(each)]
    own = {name for each in cls.__mro__ if each not in ours for name in vars(each)} - {"name"}
    found: dict[str, Any] = {}
    for each in reversed(ours):
        hints = get_type_hints(each, include_extras=True)
        found |= {name: get_args(hint)[0] for name, hint in hints.items() if get_origin(hint) is ClassVar and name in own}
    return found


def refuse_near_misses(cls: Any) -> None:
    """TypeError if a user's class has a method or a bare attribute that is nearly a name of its contract, and that nothing in the
    class uses; or a value that hides a method of its contract."""
    theirs = [each for each in cls.__mro__ if is_ours(each)]
    own = [each for each in cls.__mro__ if each not in theirs and each.__module__ not in ("abc", "builtins", "typing")]
    methods = {name for each in theirs for name, value in vars(each).items() if isfunction(value) and name[0] != "_"}
    names = {name for each in own for name, value in vars(each).items() if _is_value(value)}
    for name in methods & names.union(*map(get_annotations, own)):
        hides = f"is a value, and parts of this kind have a method {name}: give the value another name"
        raise TypeError(f"{cls.__name__}.{name} {hides}{place_of_class(cls)}")
    known = {name for each in theirs for name in (*vars(each), *get_annotations(each)) if not name.startswith("_")}
    stated = {name: value for each in own[::-1] for name, value in vars(each).items() if name not in get_annotations(each)}
    functions = [function for value in stated.values() if (function := function_of(value))]
    used = {name for function in functions for name in names_of_code(function.__code__)}
    for name in stated.keys() - known - used:
        alike = {other: SequenceMatcher(None, other, name).ratio() for other in sorted(known - stated.keys())}
        near = max(alike, key=alike.__getitem__)
        if alike[near] >= _NEAR and not (name.startswith("_") or isinstance(stated[name], type)):
            place = place_of(stated[name]) or place_of_class(cls)
            raise TypeError(f"{cls.__name__}.{name} is used by nothing; did you mean {near}?{place}")


def names_of_code(code: CodeType) -> Iterator[str]:
    """The names of globals and attributes in a function's code, and in the functions inside it."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from names_of_code(inner)
