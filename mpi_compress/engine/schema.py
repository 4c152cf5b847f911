"""The schema of a checkpoint, by its content: the fields of every state, of what is counted, and the columns of the result.

Another version of the code, whose states have other fields, other types or other places, has another schema; so it never reads
what it cannot understand.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, get_args


def schema_of(states: Iterable[Any], columns: Iterable[str]) -> str:
    """A hash of how states, instances or their classes, are laid out, and of the columns of a trace."""
    seen: set[type] = set()
    lines = [line for state in states for line in _layout(state, seen)]
    return hashlib.sha256("\n".join([*lines, "columns", *columns]).encode()).hexdigest()[:16]


def _layout(state: Any, seen: set[type]) -> Iterator[str]:
    """A line for each kind of value in a state, in the order of its fields; each dataclass once."""
    kind = state if isinstance(state, type) else type(state)
    yield f"{kind.__module__}.{kind.__qualname__}"
    if is_dataclass(kind):
        if kind not in seen:
            seen.add(kind)
            yield from _fields(kind, seen)
        if state is not kind:
            for field in fields(kind):
                if is_dataclass(type(value := getattr(state, field.name, None))) and type(value) not in seen:
                    yield from _layout(value, seen)
    elif isinstance(state, Mapping):
        for key, value in state.items():
            yield repr(key)
            yield from _layout(value, seen)
    elif isinstance(state, list | tuple):
        for value in state:
            yield from _layout(value, seen)


def _fields(kind: type, seen: set[type]) -> Iterator[str]:
    """The fields of a dataclass, and of those that the types of its fields name."""
    for field in fields(kind):
        yield f"{field.name}: {field.type!r}"
        for named in _named(field.type):
            if named not in seen:
                yield from _layout(named, seen)


def _named(hint: Any) -> Iterator[type]:
    """The dataclasses in the type of a field."""
    if isinstance(hint, type) and is_dataclass(hint):
        yield hint
    for inner in get_args(hint):
        yield from _named(inner)
