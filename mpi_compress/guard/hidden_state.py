"""Users' parts that remember something outside of their states, or draw from global generators: what changes while they are checked
shows it."""

import pickle
import random
import sys
from collections.abc import Iterable, Iterator
from functools import cached_property
from hashlib import sha256
from inspect import isfunction, ismodule
from types import FunctionType
from typing import Any

import numpy as np

from mpi_compress.core.blame import function_of, is_users_file, place_of_class
from mpi_compress.core.own_classes import names_of_code
from mpi_compress.core.registry import is_ours
from mpi_compress.guard.findings import Findings, either

Contents = list[tuple[Any, dict[str, bytes]]]


def contents(parts: Iterable[Any]) -> Contents:
    """What each of the users' parts among these holds now."""
    distinct = {id(part): part for part in parts if part is not None and not is_ours(part)}
    return [(part, _content(part)) for part in distinct.values()]


def generators() -> tuple[Any, ...]:
    """The states of the global generators of `random` and NumPy, which all parts of a process share."""
    kind, key, *rest = np.random.get_state()  # noqa: NPY002
    return random.getstate(), (kind, bytes(key), *rest)  # type: ignore[arg-type]


def memory(_: object, held: Contents) -> Findings:
    """Whether parts hold what they held before; if not, which one and where it does not."""
    wrong = next(map(". ".join, kept(held).items()), "")
    yield either("memory", not wrong, "nothing is kept from call to call", f"{wrong}; what else is wrong may follow from it")


def kept(held: Contents) -> dict[str, str]:
    """What would do, by where parts do not hold what they held before."""
    found = {}
    for part, before in held:
        changed = (place for place, content in _content(part).items() if before.get(place) != content)
        if place := next(changed, ""):
            name, why = getattr(part, "name", type(part).__name__), "from call to call, which makes results depend on the layout"
            found[f"{name} keeps something in {place} {why}"] = f"{_REMEDY}{place_of_class(type(part))}"
    return found


_REMEDY = (
    "A compressor's memory comes from start(dim), an algorithm's from start_worker and start_master, random numbers from t.rng; "
    "what is computed only once belongs behind functools.cache"
)


def _content(part: Any) -> dict[str, bytes]:
    """A hash of what a part, its classes, and the global names in its methods hold, by place; not of what cannot be pickled."""
    return {place: held for where, value in _places(part) for place, held in _hashes(where, value, set())}


def _hashes(place: str, value: Any, seen: set[int]) -> Iterator[tuple[str, bytes]]:
    """The hash of a value; of one that cannot be pickled those of its attributes."""
    try:
        yield place, sha256(pickle.dumps(value)).digest()
    except Exception:  # pickling calls users' code
        seen.add(id(value))
        for name, held in getattr(value, "__dict__", {}).items() if _is_the_users(type(value)) else ():
            if id(held) not in seen:
                yield from _hashes(f"{place}.{name}", held, seen)


def _places(part: Any) -> Iterator[tuple[str, Any]]:
    cls = type(part)
    for name, value in vars(part).items():
        owner = getattr(getattr(value, "func", value), "__self__", value)  # a downlink's verb, bound to the method, keeps it
        if not (is_ours(owner) or isinstance(getattr(cls, name, None), cached_property)):
            yield f"self.{name}", value
    for each in cls.__mro__:
        if each is object or is_ours(each):
            continue
        for name, value in vars(each).items():
            if function := function_of(value):
                yield from _globals_of(function, set())
            elif not (name.startswith("__") or callable(value) or hasattr(value, "__get__")):
                yield f"{each.__name__}.{name}", value


def _globals_of(function: FunctionType, seen: set[Any]) -> Iterator[tuple[str, Any]]:
    """What a function keeps: its defaults, what it closes over, the global values that it names, and those that the functions and
    the modules of the user keep which it names."""
    seen.add(function)
    module, names = function.__module__, names_of_code(function.__code__)
    for i, value in enumerate((*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())):
        yield f"default {i + 1} of {module}.{function.__qualname__}", value
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if name != "__class__":
            yield from _kept(f"{module}.{name}", getattr(cell, "cell_contents", None), seen)
    for name in names:
        yield from _kept(f"{module}.{name}", function.__globals__.get(name), seen)


def _kept(place: str, value: Any, seen: set[Any]) -> Iterator[tuple[str, Any]]:
    """A value that a function names, by its place."""
    if isfunction(value) or ismodule(value):
        if value in seen or not _is_the_users(value):
            return
        if isfunction(value):
            yield from _globals_of(value, seen)
            return
        seen.add(value)
        for name, held in vars(value).items():
            if not (name.startswith("__") or ismodule(held)):
                yield from _kept(f"{value.__name__}.{name}", held, seen)
    elif not (value is None or isinstance(value, type) or (callable(value) and not _is_the_users(type(value)))):
        yield place, value


def _is_the_users(value: Any) -> bool:
    """True for a module, a function or a class that stands in a file of the user's."""
    module = value if ismodule(value) else sys.modules.get(value.__module__)
    return is_users_file(getattr(module, "__file__", None) or "<")
