"""What methods of users' parts return, checked where our code takes it: a wrong value would otherwise pass in silence.

A contract says beside a method what it returns, by `@returns(check)`. The check is asked of the classes of users alone.
"""

from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any

import numpy as np

from mpi_compress.core.blame import is_ours, place_of
from mpi_compress.core.errors import UserError

Check = Callable[..., Any]
"""Of a part, what its method returned, and the arguments: the value to go on with, or a ValueError that says what it should be."""


def returns(check: Check, given: Callable[[Any], Any] | None = None) -> Callable[[Any], Any]:
    """Decorate a method of a contract: what a user's class returns is checked by `check`. `given` makes its first argument."""

    def mark(method: Any) -> Any:
        method.checks = check, given
        return method

    return mark


def check_returned(cls: Any) -> None:
    """Let the methods of a user's class be checked as its contract says."""
    for name in dir(cls):
        defined = [each for each in cls.__mro__ if name in vars(each)]
        method, *inherited = (vars(each)[name] for each in defined)
        marks = [each.checks for each in inherited if hasattr(each, "checks")]
        if marks and isinstance(method, FunctionType) and not (hasattr(method, "checks") or is_ours(defined[0])):
            setattr(cls, name, _checking(method, *marks[0]))


def _checking(method: FunctionType, check: Check, given: Callable[[Any], Any] | None) -> Any:
    @wraps(method)
    def call(part: Any, *arguments: Any, **named: Any) -> Any:
        if given is not None:
            arguments = given(arguments[0]), *arguments[1:]
        with np.errstate(all="ignore"):
            returned = method(part, *arguments, **named)
        try:
            return check(part, returned, *arguments)
        except ValueError as error:
            raise UserError(f"{part.name}, {method.__name__}: {error}{place_of(method)}") from None

    call.checks = check, given  # type: ignore[attr-defined]
    return call
