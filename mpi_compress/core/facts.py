"""What a user's part states of itself by class variables, such as `curvature = 1.0`, against the types of its contract."""

from functools import cache
from types import MethodType, UnionType
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

import numpy as np

from mpi_compress.core.blame import place_of, place_of_class
from mpi_compress.core.errors import UserError
from mpi_compress.core.fields import as_type

_WORDS = {float: "a number, such as {0} = 1.0", bool: "True or False", int: "a whole number", str: "text", type(None): "None"}


def refuse_wrong_facts(part: Any, where: str) -> None:
    """Compare what a user's part states with the types of its contract; a property counts by what it returns.

    Raises:
        UserError: a method is in the place of a value, or a value has another type or is out of range, in one line.
    """
    cls: Any = type(part)
    for name, hint in _stated(cls).items():
        value = getattr(part, name, None)
        kinds = {*get_args(hint)} if isinstance(hint, UnionType) else {getattr(hint, "__origin__", hint)}
        wanted = " or ".join(_WORDS[kind] for kind in _WORDS if kind in kinds).format(name) or "a value"
        if isinstance(value, MethodType):
            raise UserError(f"{where}: '{part.name}': {name} is a method; it should be {wanted}, or a @property{place_of(value)}")
        try:
            if kinds <= _WORDS.keys() and hasattr(part, name):
                as_type(value.item() if isinstance(value, np.generic) else value, hint)
        except ValueError as error:
            wanted = error.args[0] if isinstance(error.args[0], str) else wanted
            given = f"{name} = {value!r} was given; it should be {wanted}"
            raise UserError(f"{where}: '{part.name}': {given}{place_of_class(cls)}") from None


@cache
def _stated(cls: Any) -> dict[str, Any]:
    """The class variables of a part's contract that classes of users define, with their types."""
    ours = [each for each in cls.__mro__ if each.__module__.partition(".")[0] == __name__.partition(".")[0]]
    own = {name for each in cls.__mro__ if each not in ours for name in vars(each)} - {"name"}
    found: dict[str, Any] = {}
    for each in reversed(ours):
        hints = get_type_hints(each, include_extras=True)
        found |= {name: get_args(hint)[0] for name, hint in hints.items() if get_origin(hint) is ClassVar and name in own}
    return found
