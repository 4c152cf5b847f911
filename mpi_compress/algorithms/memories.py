"""The memories of the workers that a process hosts, as rows: a dataclass whose arrays have an axis of workers in front. Numbers of
one worker are an array (m,). Memories of a user's own kind are a list."""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

import numpy as np

ALL = ...


def one(w: Any, i: int) -> Any:
    """The memory of the worker in row i: its arrays are those of the rows."""
    if isinstance(w, list):
        return w[i]
    return _each(w, lambda held: held[i].item() if held.ndim == 1 and held.dtype != object else held[i])


def starts_at_0(memory: Any) -> Any:
    """`start_workers` of a method whose workers remember vectors (m, d), all 0 before round 0."""

    def start_workers(self: Any, node: Any, fs: Any) -> Any:
        return memory(*(fs.zeros() for _ in fields(memory)))

    return start_workers


def notes(start_workers: Any) -> Any:
    """Marks the `start_workers` of a method whose workers remember numbers for the log alone."""
    start_workers.notes = True
    return start_workers


def some(w: Any, rows: slice) -> Any:
    """The memories of some rows: the same arrays."""
    return w[rows] if isinstance(w, list) else _each(w, lambda held: held[rows])


def put(w: Any, rows: Any, changed: Any) -> None:
    """Take over what became of `one` row, of `some` rows, or of `ALL` of a memory."""
    if isinstance(w, list):
        w[rows] = changed
        return
    for name in _names(w.__class__):
        held, new = getattr(w, name), getattr(changed, name)
        if is_dataclass(held):
            put(held, rows, new)
        elif not isinstance(held, np.ndarray) or (rows is ALL and held.shape != new.shape):
            setattr(w, name, new)  # all workers share it
        elif not (isinstance(new, np.ndarray) and np.may_share_memory(new, held)):
            held[rows] = new


def together(each: Sequence[Any]) -> Any:
    """The memories of workers, at least one, as rows."""
    first = each[0]
    if first is None:
        return None
    held = {f.name: [getattr(worker, f.name) for worker in each] for f in fields(first)}
    return replace(first, **{n: together(of) if of[0] is None or is_dataclass(of[0]) else np.array(of) for n, of in held.items()})


def _each(w: Any, of: Any) -> Any:
    held = {name: getattr(w, name) for name in _names(w.__class__)}
    if not held:
        return w  # all workers share it
    return replace(w, **{name: of(a) if isinstance(a, np.ndarray) else _each(a, of) for name, a in held.items()})


@cache
def _names(kind: Any) -> Sequence[str]:
    """The fields of a dataclass; none of another class."""
    return [f.name for f in fields(kind)] if is_dataclass(kind) else []
