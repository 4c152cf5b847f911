"""The fields of a part: their types, and values from TOML as these types want them.

Most values are right and of a common type; they are converted here. pydantic is imported for the others alone, since its import
takes longer than to read a job: it converts what is less common, and explains what is wrong.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields
from functools import cache, reduce
from math import inf
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from mpi_compress.core.errors import UserError

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError


@dataclass(frozen=True)
class Checked:
    """Annotates the type of a field: `Annotated[str, Checked(check)]`.

    Args:
        check: returns the value to use, or raises ValueError with what the value should be.
        is_range: True if it returns the value as it is; then parts that are built in Python are checked too.
    """

    check: Callable[[Any], Any]
    is_range: bool = False

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core.core_schema import no_info_after_validator_function

        return no_info_after_validator_function(self.check, handler(source))


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
    if _needed(cls) <= set(values):
        with suppress(ValueError, OverflowError):
            return {key: as_type(value, _hints(cls)[key]) for key, value in values.items()}
    return _validated(cls, values, where)


def as_type(value: Any, hint: Any, exact: bool = False) -> Any:
    """A value from TOML as a field's type wants it; `exact`: a whole number is no float. ValueError if it is not of that type, or
    of one that is unusual, or a check refuses it."""
    kind, inner = get_origin(hint), get_args(hint)
    if hint is Any or type(value) is hint:
        return value
    if kind is Literal and any(type(value) is type(choice) and value == choice for choice in inner):
        return value
    if hint is float and type(value) is int and not exact:
        return float(value)
    if kind is Annotated and all(isinstance(each, Checked) for each in hint.__metadata__):
        value = as_type(value, inner[0], exact)
        return reduce(lambda value, each: each.check(value), hint.__metadata__, value)
    if kind in (Union, UnionType):
        for exactly in (True, False) if not exact else (True,):
            for each in inner:
                with suppress(ValueError):
                    return as_type(value, each, exactly)
    if kind is list and type(value) is list:
        return [as_type(each, inner[0]) for each in value]
    if kind in (dict, Mapping) and type(value) is dict and inner[0] is str and all(type(key) is str for key in value):
        return {key: as_type(each, inner[1]) for key, each in value.items()}
    raise ValueError(hint)


def _validated(cls: Any, values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The values as pydantic converts them; UserError if it finds a wrong one."""
    from pydantic import ValidationError

    try:
        model = _model(cls).model_validate({key: _suited(value, _hints(cls)[key]) for key, value in values.items()})
    except ValidationError as error:
        raise UserError(_first(error, values, where)) from None
    return {key: getattr(model, key) for key in values}


def _suited(value: Any, hint: Any) -> Any:
    """A value from TOML as the field's type wants it: an array as a tuple, text as a path."""
    if isinstance(value, list) and get_origin(hint) is tuple:
        return tuple(value)
    return Path(value) if isinstance(value, str) and hint is Path else value


@cache
def _hints(cls: Any) -> dict[str, Any]:
    """The types of a part's fields, with their checks; to find them takes longer than to build the part."""
    return get_type_hints(cls, include_extras=True)


@cache
def _needed(cls: Any) -> set[str]:
    """The fields without a default."""
    return {f.name for f in fields(cls) if f.init and f.default is MISSING and f.default_factory is MISSING}


@cache
def _model(cls: Any) -> "type[BaseModel]":
    """A pydantic model with the same fields, which checks types strictly."""
    from pydantic import ConfigDict, create_model

    hints, needed = _hints(cls), _needed(cls)
    wanted: dict[str, Any] = {name: (hints[name], ... if name in needed else None) for name in parameters(cls)}
    return create_model(cls.__name__, __config__=ConfigDict(strict=True, arbitrary_types_allowed=True), **wanted)


def _first(error: "ValidationError", values: Mapping[str, Any], where: str) -> str:
    """One line for the first complaint; alternatives of a union are joined by 'or'."""
    complaints = error.errors()
    first = complaints[0]
    if not first["loc"]:
        return f"{where}: {first['msg'].removeprefix('Value error, ')}"
    key = str(first["loc"][0])
    if first["type"] == "missing":
        return f"{where}.{key}: is missing"
    wants = [c["msg"].removeprefix("Input should be ").removeprefix("Value error, ") for c in complaints if c["loc"][0] == key]
    return f"{where}.{key}: {values.get(key)!r} was given; it should be {' or '.join(dict.fromkeys(wants))}"
