"""Checks the states of users' parts: a checkpoint must be able to save them and to give them back as they are."""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        raise UserError(f"{compressor.name}: with {has} start(self, dim) it needs compress(self, v, t{state})") from None
    state = link.start()
    if compressor.has_state and (complaint := unsavable(state)):
        raise UserError(f"{compressor.name}, start: {complaint}")
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
