"""Checks the states of users' parts: a checkpoint must be able to save them and to give them back as they are."""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.arrays import shown
from mpi_compress.core.blame import place_of
from mpi_compress.core.errors import UserError
from mpi_compress.messages.link import Link
from mpi_compress.saving.frames import dump
from mpi_compress.saving.saved_states import Expected, load
from mpi_compress.saving.state_kinds import attributes


def unsavable(state: Any, *others: Any) -> str:
    """Why a state could not be saved and given back as it is, "" if it can; `others` are saved apart from it."""
    try:
        load(dump(state), state, Expected(False, -1))
    except (TypeError, ValueError) as error:
        return f"its state cannot be saved in a checkpoint: {error}; dataclasses of arrays, numbers, lists and dicts can"
    arrays, elsewhere = list(_arrays(state)), list(_arrays(others))
    for i, one in enumerate(arrays):
        if any(one is not other and np.may_share_memory(one, other) for other in arrays[i + 1 :]):
            return "its state has arrays that share memory, which a checkpoint would part: keep one of them"
        if any(np.may_share_memory(one, other) for other in elsewhere):
            return "its state shares memory with another, which a checkpoint would part: keep a copy"
    return ""


def drifted(first: Any, now: Any, dim: int, algorithm: type) -> str:
    """Why a checkpoint of a state could not be read by the state that it began as; "" if it could."""
    try:
        load(dump(now), first, Expected(False, dim, algorithm))
    except (TypeError, ValueError) as error:
        changes = (f"{place} was {was}, and is {shown(found)}" for place, was, found in _changes(first, now, dim))
        return f"{next(changes, str(error))}, so that no checkpoint of it can be read; the first state says what it is"
    return ""


def _changes(first: Any, now: Any, dim: int, place: str = "") -> Iterator[tuple[str, str, Any]]:
    """The arrays (d,) of a first state that have another type or shape now: where, what they were, and what they are."""
    if isinstance(first, np.ndarray) and first.shape == (dim,):
        if not (isinstance(now, np.ndarray) and (now.dtype, now.shape) == (first.dtype, first.shape)):
            yield place, shown(first), now
    elif is_dataclass(first) and not isinstance(first, type):
        for name, held in attributes(first).items():
            yield from _changes(held, getattr(now, name, None), dim, f"{place}.{name}".strip("."))
    elif isinstance(first, Mapping) and isinstance(now, Mapping):
        for key, held in first.items():
            yield from _changes(held, now.get(key), dim, f"{place}[{key!r}]")


def first_state(link: Link) -> Any:
    """What a node's compressor remembers before its first message.

    Raises:
        UserError: it cannot be saved, or `compress` does not take it.
    """
    compressor = link.compressor
    try:
        signature(compressor.compress).bind(*range(2 + compressor.has_state))
    except TypeError:
        has, state = ("a", ", state") if compressor.has_state else ("no", "")
        where = place_of(compressor.compress)
        raise UserError(f"{compressor.name}: with {has} start(self, dim) it needs compress(self, v, t{state}){where}") from None
    state = link.start()
    if compressor.has_state and (complaint := unsavable(state)):
        raise UserError(f"{compressor.name}, start: {complaint}{place_of(compressor.start)}")
    return state


def _arrays(state: Any) -> Iterator[NDArray[Any]]:
    """The arrays in a state."""
    if isinstance(state, np.ndarray):
        yield state
    elif is_dataclass(state) and not isinstance(state, type):
        yield from _arrays(list(attributes(state).values()))
    elif isinstance(state, Mapping):
        yield from _arrays(list(state.values()))
    elif isinstance(state, list | tuple | set):
        for each in state:
            yield from _arrays(each)
