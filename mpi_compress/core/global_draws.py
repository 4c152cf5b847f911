"""The global generators of `random` and NumPy: a part that draws from them depends on the layout, and is refused."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from mpi_compress.core.blame import place_of
from mpi_compress.core.errors import UserError

FIRST_ROUNDS = 3  # in which every call of a user's part is looked at
_switch = {"on": True}


class GlobalDraw(UserError):
    """A user's part has drawn from a generator that all parts of a process share."""


def states() -> tuple[Any, ...]:
    """The states of both generators."""
    kind, key, *rest = np.random.get_state()  # noqa: NPY002
    return random.getstate(), (kind, bytes(key), *rest)  # type: ignore[arg-type]


@contextmanager
def restored() -> Iterator[None]:
    """Both generators are afterwards as they were."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002


def refusing(whose: str, method: Callable[..., Any], *arguments: Any) -> Any:
    """What a method of a user's part returns; GlobalDraw if a global generator has moved meanwhile."""
    if not _switch["on"]:
        return method(*arguments)
    before = states()
    given = method(*arguments)
    if states() != before:
        raise GlobalDraw(
            f"{whose}{place_of(method)}: draws from the global generator of random or of np.random, so that results depend on the "
            "layout; random numbers come from t.rng"
        )
    return given


def switch_off() -> None:
    """Refuse nothing in this process, which is compared with others."""
    _switch["on"] = False
