"""What users' classes of parts state: it takes effect, or is refused as they are registered and built.

A bare attribute with the name of a parameter is its new default; a class variable such as `curvature = 1.0` has a type; a name that
is nearly one of the contract would say nothing.
"""

import linecache
from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import MISSING, Field, field, fields, is_dataclass
from difflib import get_close_matches
from functools import cache, partial
from inspect import get_annotations, getattr_static, isfunction
from types import CodeType, FunctionType, MethodType, UnionType
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

import numpy as np

from mpi_compress.core.blame import is_ours, place_of, place_of_class
from mpi_compress.core.errors import UserError
from mpi_compress.core.fields import as_type

_WORDS = {float: "a number, such as {0} = 1.0", bool: "True or False", int: "a whole number", str: "text", type(None): "None"}
_NEAR = 0.85  # of letters in common: worker_send and worker_sends have 0.96, start_worker and start_master 0.58
_NEAR_STATED = 0.8  # theorm and theory have 0.83
_SHORT = 4  # letters of a name that says nothing by being near another


def state_parameters(cls: Any) -> None:
    """Let the bare attributes of a user's class that have names of parameters be these parameters' new defaults."""
    known, found, typed = _parameters(cls), dict[str, Any](), get_annotations(cls)
    for each in cls.__mro__:
        if not is_ours(each) and (each is cls or "__dataclass_fields__" not in vars(each)):
            bare = {name: value for name, value in vars(each).items() if name in known and name not in typed}
            found = {name: value for name, value in bare.items() if not (callable(value) or hasattr(value, "__get__"))} | found
    for name, value in found.items():
        keyword = known[name][1]
        if isinstance(value, list | dict):
            setattr(cls, name, field(default_factory=partial(deepcopy, value), kw_only=keyword))
        elif keyword:
            setattr(cls, name, value if isinstance(value, Field) else field(default=value, kw_only=True))
    cls.__annotations__ = typed | {name: known[name][0] for name in found}


def stated_defaults(cls: Any) -> dict[str, Any]:
    """The defaults of parameters of the contract that users' classes state, which are checked as a job's values are."""
    known, at = _parameters(cls), vars(cls).get("__dataclass_fields__", {})
    own = {name for each in cls.__mro__ if not is_ours(each) for name in get_annotations(each)}
    found = {name: at[name] for name in own & known.keys() & at.keys()}
    fresh = {name: each.default_factory() for name, each in found.items() if each.default_factory is not MISSING}
    return {name: each.default for name, each in found.items() if each.default is not MISSING and each.default is not None} | fresh


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
        value = getattr(part, name, None)
        kinds = {*get_args(hint)} if isinstance(hint, UnionType) else {getattr(hint, "__origin__", hint)}
        values = get_args(hint) if get_origin(hint) is Literal else ()
        words = [_WORDS[kind].format(name) for kind in _WORDS if kind in kinds] or [repr(value) for value in values]
        wanted = " or ".join(words) or "a value"
        if isinstance(value, MethodType):
            raise UserError(f"{where}: '{part.name}': {name} is a method; it should be {wanted}, or a @property{place_of(value)}")
        try:
            if (kinds <= _WORDS.keys() or values) and hasattr(part, name):
                as_type(value.item() if isinstance(value, np.generic) else value, hint)
        except ValueError as error:
            wanted = error.args[0] if isinstance(error.args[0], str) else wanted
            given = f"{name} = {value!r} was given; it should be {wanted}"
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
    """TypeError if a user's class has a method that is nearly a verb of its contract, not that verb, and no call of the method; or
    a field that hides a method of its contract."""
    ours = {name: value for each in cls.__mro__ if is_ours(each) for name, value in vars(each).items()}
    own = [each for each in cls.__mro__ if not is_ours(each) and each.__module__ not in ("abc", "builtins", "typing")]
    for name in (name for each in own for name in get_annotations(each) if isfunction(ours.get(name))):
        hides = f"is a field, and parts of this kind have a method {name}: give the field another name"
        raise TypeError(f"{cls.__name__}.{name} {hides}{place_of_class(cls)}")
    defined = {name for each in own for name in vars(each)}
    verbs = [name for name in ours.keys() - defined if not name.startswith("_") and len(name) > _SHORT]
    functions = [f for each in own for value in vars(each).values() if (f := function_of(value))]
    used = {name for function in functions for name in names_of_code(function.__code__)}
    _refuse_near_attributes(cls, own, ours, used)
    for each in own:
        for name, value in vars(each).items():
            function = function_of(value)
            if function is None or name.startswith("_") or name in used or name in ours:
                continue
            anagrams = [verb for verb in verbs if sorted(verb) == sorted(name)]  # dleta
            for verb in (anagrams or get_close_matches(name, verbs, n=1, cutoff=_NEAR))[:1]:
                where = f"{function.__code__.co_filename}, line {_line_of(function.__code__)}"
                raise TypeError(f"{cls.__name__}.{name} is called by nothing; did you mean {verb}? ({where})")


def _refuse_near_attributes(cls: Any, own: list[Any], ours: Mapping[str, Any], used: set[str]) -> None:
    """TypeError if a bare attribute has nearly the name of something that the contract states, and nothing in the class uses it."""
    known = {*ours, *(name for each in cls.__mro__ if is_ours(each) for name in get_annotations(each))}
    names = [name for name in known if not name.startswith("_") and len(name) > _SHORT]
    for each in own:
        bare = vars(each).keys() - get_annotations(each).keys() - known - used
        for name in sorted(name for name in bare if not name.startswith("_") and not callable(vars(each)[name])):
            if function_of(vars(each)[name]) is None and (near := get_close_matches(name, names, n=1, cutoff=_NEAR_STATED)):
                raise TypeError(f"{cls.__name__}.{name} states nothing; did you mean {near[0]}?{place_of_class(cls)}")


def _line_of(code: CodeType) -> int:
    """The line of the method's `def`, below its decorators."""
    line = code.co_firstlineno
    while linecache.getline(code.co_filename, line).lstrip().startswith("@"):
        line += 1
    return line


def function_of(value: Any) -> FunctionType | None:
    """The function behind a method or a property."""
    behind = (getattr_static(value, name, None) for name in ("__func__", "fget", "func"))
    return next((inner for inner in (value, *behind) if isfunction(inner)), None)


def names_of_code(code: CodeType) -> Iterator[str]:
    """The names of globals and attributes in a function's code, and in the functions inside it."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from names_of_code(inner)
