"""The fields of a part: their types, and values from TOML as these types want them."""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields
from functools import cache
from itertools import product
from math import inf
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from mpi_compress.core.errors import UserError

_WORDS = {float: "a number", int: "a whole number", bool: "true or false", str: "text", type(None): "None", Path: "a path"}


@dataclass(frozen=True)
class Checked:
    """Annotates the type of a field: `Annotated[str, Checked(check)]`.

    Args:
        check: returns the value to use, or raises ValueError with what the value should be.
        is_range: True if it returns the value as it is; then parts that are built in Python are checked too.
    """

    check: Callable[[Any], Any]
    is_range: bool = False


def within(interval: str) -> Checked:
    """The check that a number is in an interval, such as "(0, 1]"."""
    from_least, up_to_most = interval[0] == "[", interval[-1] == "]"
    least, most = interval[1:-1].split(", ")
    low, high = float(least), float(most)
    words = f"{'at least' if from_least else 'above'} {least}"
    if from_least and up_to_most and high < inf:
        words = f"from {least} to {most}"
    elif high < inf or up_to_most:
        words += ", or inf" if high == inf else f" and {'at most' if up_to_most else 'below'} {most}"

    def check(value: float) -> float:
        if not (low < value < high or (from_least and value == low) or (up_to_most and value == high)):
            raise ValueError(words)
        return value

    return Checked(check, is_range=True)


AtLeastOne = Annotated[int, within("[1, inf)")]
Positive = Annotated[float, within("(0, inf)")]
NotNegative = Annotated[float, within("[0, inf)")]
Curvature = Annotated[float, within("[0, inf]")]
Share = Annotated[float, within("(0, 1]")]
Decay = Annotated[float, within("[0, 1)")]


def refuse_out_of_range(part: Any) -> None:
    """Raise ValueError where a field of a part is out of the range that its type states; None passes."""
    for name, check in _ranges(part.__class__):
        value = getattr(part, name)
        if value is not None:
            try:
                check(value)
            except ValueError as error:
                raise ValueError(f"{name} = {value!r} was given; it should be {error}") from None


@cache
def _ranges(cls: Any) -> list[tuple[str, Callable[[Any], Any]]]:
    """The fields of a part whose types state a range, each with its check."""
    found: list[tuple[str, Callable[[Any], Any]]] = []
    with suppress(NameError):  # a type that only checkers of types import
        for name in parameters(cls):
            for hint in (_hints(cls)[name], *get_args(_hints(cls)[name])):
                checks = getattr(hint, "__metadata__", ())
                found += [(name, each.check) for each in checks if isinstance(each, Checked) and each.is_range]
    return found


def parameters(cls: Any) -> list[str]:
    """The fields of a part that a job may set."""
    return [f.name for f in fields(cls) if f.init]


def converted(cls: Any, values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The values of some fields, all of them known, as their types want them. UserError for a wrong type, a value that its check
    refuses, or a field without a default that is missing."""
    if missing := _needed(cls) - values.keys():
        raise UserError(f"{where}.{next(name for name in parameters(cls) if name in missing)}: is missing")
    found = {}
    for key, value in values.items():
        try:
            found[key] = as_type(value, _hints(cls)[key])
        except ValueError as error:
            raise UserError(f"{where}.{key}: {value!r} was given; it should be {error}") from None
    return found


def as_type(value: Any, hint: Any, exact: bool = False) -> Any:
    """A value from TOML as a field's type wants it; `exact`: a whole number is no float. ValueError, with what it should be, if it
    is not of that type, or a check refuses it."""
    kind, inner = get_origin(hint), get_args(hint)
    if hint is Any or type(value) is hint:
        return value
    if hint is float and (isinstance(value, float) or (type(value) is int and not exact)):
        with suppress(OverflowError):
            return float(value)
    if hint is Path and type(value) is str:
        return Path(value)
    if kind is Annotated:
        value = as_type(value, inner[0], exact)
        for each in hint.__metadata__:
            value = each.check(value) if isinstance(each, Checked) else value
        return value
    if kind in (Union, UnionType):
        return _as_one_of(value, inner, exact)
    if kind is Literal:
        if any(type(value) is type(choice) and value == choice for choice in inner):
            return value
        raise ValueError(" or ".join(map(repr, inner)))
    plain: Any = kind or hint
    is_table = issubclass(plain, Mapping)
    is_list = issubclass(plain, Collection) and not is_table
    if kind and is_table and isinstance(value, Mapping):
        return {as_type(key, inner[0]): as_type(each, inner[1]) for key, each in value.items()}
    if kind and is_list and type(value) in (list, kind):
        return (tuple if kind is tuple else list)(as_type(each, inner[0]) for each in value)
    if plain not in _WORDS and isinstance(value, plain):
        return value
    raise ValueError(_WORDS.get(plain) or ("a table" if is_table else "a list" if is_list else f"a {plain.__name__}"))


def _as_one_of(value: Any, hints: Collection[Any], exact: bool) -> Any:
    """A value as the first of some types that it exactly is, else as the first that it can be."""
    wanted = dict[Any, str]()
    for exactly, hint in product((True, False), hints):
        try:
            return as_type(value, hint, exact or exactly)
        except ValueError as error:
            wanted[hint] = str(error)
    wanted.pop(type(None), None)  # jobs cannot write it
    raise ValueError(" or ".join(dict.fromkeys(wanted.values())))


@cache
def _hints(cls: Any) -> dict[str, Any]:
    """The types of a part's fields, with their checks; to find them takes longer than to build the part."""
    return get_type_hints(cls, include_extras=True)


@cache
def _needed(cls: Any) -> set[str]:
    """The fields without a default."""
    return {f.name for f in fields(cls) if f.init and f.default is MISSING and f.default_factory is MISSING}
