"""Users' parts that remember something outside of their states, or draw from global generators: what changes while they are checked
shows it, and what their code calls."""

import pickle
import random
import sys
from collections.abc import Iterable, Iterator
from functools import cached_property
from hashlib import sha256
from inspect import isclass, isfunction, ismodule, unwrap
from types import FunctionType
from typing import Any

import numpy as np

from mpi_compress.core.blame import function_of, is_users_file, place_of_class
from mpi_compress.core.own_classes import names_of_code
from mpi_compress.core.registry import is_ours
from mpi_compress.guard.findings import Findings, either
from mpi_compress.guard.own_draws import unrepeatable

Contents = list[tuple[Any, dict[str, bytes]]]
Seen = dict[FunctionType, None]  # in the order in which they are found


def contents(parts: Iterable[Any]) -> Contents:
    """What each of the users' parts among these holds now."""
    distinct = {id(part): part for part in parts if part is not None and not is_ours(part)}
    return [(part, _content(part)) for part in distinct.values()]


def generators() -> bytes:
    """The states of the global generators of `random` and NumPy, which all parts of a process share."""
    return pickle.dumps((random.getstate(), np.random.get_state()))  # noqa: NPY002


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
            where = f"{_name(part)} keeps something in {place} from call to call"
            found[f"{where}, which makes results depend on the layout"] = f"{_REMEDY}{place_of_class(type(part))}"
    return found


def drawn(held: Contents) -> dict[str, str]:
    """What would do, by what the parts' code calls that returns something else each time."""
    found = {}
    for part, _ in held:
        functions: Seen = {}
        list(_places(part, functions))
        if calls := unrepeatable(each for each in functions if is_users_file(each.__code__.co_filename)):
            where = f"{_name(part)} calls {' and '.join(calls)}"
            found[f"{where}, which returns something else each time, so results depend on the layout"] = _RANDOM
    return found


def _name(part: Any) -> str:
    return getattr(part, "name", type(part).__name__)


_REMEDY = (
    "A compressor's memory comes from start(dim), an algorithm's from start_worker and start_master, random numbers from t.rng; "
    "what is computed only once belongs behind functools.cache"
)
_RANDOM = "Random numbers come from t.rng, a data generator's from self.stream(0), and no result may depend on a clock"


def _content(part: Any) -> dict[str, bytes]:
    """A hash of what a part, its classes, and the global names in its methods hold, by place; not of what cannot be pickled."""
    return {place: held for where, value in _places(part, {}) for place, held in _hashes(where, value, set())}


def _hashes(place: str, value: Any, seen: set[int]) -> Iterator[tuple[str, bytes]]:
    """The hash of a value; of one that cannot be pickled those of its attributes."""
    try:
        yield place, sha256(pickle.dumps(value)).digest()
    except Exception:  # pickling calls users' code
        seen.add(id(value))
        for name, held in getattr(value, "__dict__", {}).items() if _is_the_users(type(value)) else ():
            if id(held) not in seen:
                yield from _hashes(f"{place}.{name}", held, seen)


def _places(part: Any, seen: Seen) -> Iterator[tuple[str, Any]]:
    """What a part and its code hold, by place; `seen` gets the functions that its code uses."""
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
                yield from _globals_of(function, seen)
            elif not (name.startswith("__") or callable(value) or hasattr(value, "__get__")):
                yield f"{each.__name__}.{name}", value


def _globals_of(function: FunctionType, seen: Seen) -> Iterator[tuple[str, Any]]:
    """What a function keeps: its defaults, what it closes over, the global values that it names, and those that the functions and
    the modules of the user keep which it names."""
    seen[function] = None
    module, names = function.__module__, dict.fromkeys(names_of_code(function.__code__))
    for i, value in enumerate((*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())):
        yield f"default {i + 1} of {module}.{function.__qualname__}", value
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if name != "__class__":
            yield from _kept(f"{module}.{name}", getattr(cell, "cell_contents", None), names, seen)
    for name in names:
        yield from _kept(f"{module}.{name}", function.__globals__.get(name), names, seen)


def _kept(place: str, value: Any, names: Iterable[str], seen: Seen) -> Iterator[tuple[str, Any]]:
    """A value that a function names, by its place; of a function, a class or a module of the user's what those keep, of a module by
    these names."""
    inner = unwrap(value) if callable(value) else value  # behind functools.cache, too
    if isfunction(inner) or isclass(inner):
        for function in filter(None, map(function_of, vars(inner).values() if isclass(inner) else [inner])):
            if function not in seen and is_users_file(function.__code__.co_filename):
                yield from _globals_of(function, seen)
    elif ismodule(inner):
        held = {name: vars(inner)[name] for name in names if name in vars(inner)} if _is_the_users(inner) else {}
        for name, each in held.items():
            if not (name.startswith("__") or ismodule(each)):
                yield from _kept(f"{inner.__name__}.{name}", each, names, seen)
    elif not (value is None or (callable(value) and not _is_the_users(type(value)))):
        yield place, value


def _is_the_users(value: Any) -> bool:
    """True for a module, a function or a class that stands in a file of the user's."""
    module = value if ismodule(value) else sys.modules.get(value.__module__)
    return is_users_file(getattr(module, "__file__", None) or "<")
