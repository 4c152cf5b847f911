"""The classes of states: their names in a checkpoint, what they hold, and which of them a run may meet."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, get_args, get_type_hints

from mpi_compress.core.registry import is_ours
from mpi_compress.messages.kinds import Compressed
from mpi_compress.problem.scaled_vector import ScaledVector


def kinds_of(algorithm: type, first: Any) -> dict[str, type]:
    """The dataclasses that the states of a user's algorithm may hold, by name.

    They are those of its first states, those that their fields name, all of the modules that define one of them, the kinds of
    compressed vectors, and `ScaledVector`.
    """
    found: set[type] = {ScaledVector, *_subclasses(Compressed)}
    own = {algorithm, *_classes_in(first)}
    for cls in [*own]:
        with suppress(NameError, TypeError, AttributeError):
            own.update(_dataclasses_in([*get_type_hints(cls).values()]))
    for module in {cls.__module__ for cls in own if not is_ours(cls) and cls.__module__ in sys.modules}:
        found.update(each for each in vars(sys.modules[module]).values() if isinstance(each, type))
    return {name_of(cls): cls for cls in {*found, *own} if is_dataclass(cls)}


def _classes_in(state: Any) -> Iterator[type]:
    """The dataclasses in a state."""
    if is_dataclass(state) and not isinstance(state, type):
        yield type(state)
        state = list(attributes(state).values())
    if isinstance(state, dict):
        state = [*state.values()]
    if isinstance(state, list | tuple | set | frozenset):
        for each in state:
            yield from _classes_in(each)


def _dataclasses_in(hints: list[Any]) -> Iterator[type]:
    """The dataclasses that types of fields name."""
    while hints:
        hint = hints.pop()
        if isinstance(hint, type) and is_dataclass(hint):
            yield hint
        hints.extend(get_args(hint))


def _subclasses(cls: type) -> Iterator[type]:
    each: type
    for each in cls.__subclasses__():
        yield each
        yield from _subclasses(each)


def name_of(cls: Any) -> str:
    """A class's module and name."""
    return f"{cls.__module__}.{cls.__qualname__}"


@cache
def field_names(cls: Any) -> tuple[str, ...]:
    """The fields of a dataclass."""
    return tuple(field.name for field in fields(cls))


@cache
def is_savable(cls: Any) -> bool:
    """True for a dataclass whose instances hold nothing but attributes."""
    return is_dataclass(cls) and cls.__new__ is object.__new__


def attributes(state: Any) -> dict[str, Any]:
    """What a dataclass holds: its fields, and what was set besides; not what it computed and cached."""
    cls: Any = type(state)
    names, held = field_names(cls), getattr(state, "__dict__", {})
    if tuple(held) == names:
        return held
    found = {name: getattr(state, name) for name in names if hasattr(state, name)}
    return found | {name: value for name, value in held.items() if name not in found and not hasattr(cls, name)}
