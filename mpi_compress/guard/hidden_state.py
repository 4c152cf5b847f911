"""Users' parts that remember something outside of their states: what changes in them while a run is rehearsed shows it."""

import pickle
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from hashlib import sha256
from inspect import isfunction, ismodule
from types import CodeType, FunctionType
from typing import Any

from mpi_compress.core.registry import is_ours

Contents = list[tuple[Any, dict[str, bytes]]]
_PACKAGE = __name__.partition(".")[0]


def contents(parts: Iterable[Any]) -> Contents:
    """What each of the users' parts among these holds now."""
    distinct = {id(part): part for part in parts if part is not None and not is_ours(part)}
    return [(part, _content(part)) for part in distinct.values()]


def changed(before: Contents) -> str:
    """Which part holds something else than before, and where; "" if none does."""
    for part, held in before:
        for place, content in _content(part).items():
            if held.get(place) != content:
                name = getattr(part, "name", type(part).__name__)
                return f"{name} keeps something in {place} from call to call, which makes results depend on the layout. {_REMEDY}"
    return ""


_REMEDY = (
    "A compressor's memory comes from start(dim), an algorithm's from start_worker and start_master, random numbers from t.rng; "
    "what is computed only once belongs behind functools.cache"
)


def _content(part: Any) -> dict[str, bytes]:
    """A hash of what a part, its classes, and the global names in its methods hold, by place; not of what cannot be pickled."""
    found: dict[str, bytes] = {}
    for place, value in _places(part):
        with suppress(Exception):  # pickling calls users' code
            found[place] = sha256(pickle.dumps(value)).digest()
    return found


def _places(part: Any) -> Iterator[tuple[str, Any]]:
    cls = type(part)
    for name, value in vars(part).items():
        if not (is_ours(value) or isinstance(getattr(cls, name, None), cached_property)):
            yield f"self.{name}", value
    for each in cls.__mro__:
        if each is object or is_ours(each):
            continue
        for name, value in vars(each).items():
            if function := _function_of(value):
                yield from _globals_of(function, set())
            elif not (name.startswith("__") or callable(value) or hasattr(value, "__get__")):
                yield f"{each.__name__}.{name}", value


def _function_of(value: Any) -> FunctionType | None:
    """The function behind a method or a property."""
    for inner in (value, *(getattr(value, name, None) for name in ("__func__", "fget", "func"))):
        if isfunction(inner):
            return inner
    return None


def _globals_of(function: FunctionType, seen: set[Any]) -> Iterator[tuple[str, Any]]:
    """The global values that a function names, and those that functions of the user name which it names."""
    seen.add(function)
    for name in _names(function.__code__):
        value = function.__globals__.get(name)
        if isfunction(value):
            if value not in seen and value.__module__.partition(".")[0] != _PACKAGE:
                yield from _globals_of(value, seen)
        elif not (value is None or ismodule(value) or callable(value)):
            yield f"{function.__module__}.{name}", value


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)
