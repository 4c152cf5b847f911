"""Names in a job ↔ the classes that they mean.

A part (an algorithm, a compressor, a codec, a cost model, a data generator) is a frozen dataclass whose fields are its
parameters, the keys of its table in a job and what a result stores. It registers itself where it is defined; its package imports
every module that it holds, so a new part is a new file and nothing else.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields
from functools import cache
from types import ModuleType
from typing import Any, Generic, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from mpi_compress.errors import UserError, nearest

T = TypeVar("T")
C = TypeVar("C", bound=type)


class Registry(Mapping[str, type[T]], Generic[T]):
    """The parts of one kind, by name."""

    def __init__(self, kind: str):
        self.kind = kind
        self._parts: dict[str, type[T]] = {}

    def register(self, name: str) -> Callable[[C], C]:
        """Class decorator: the part is found under `name` in jobs."""

        def put(cls: C) -> C:
            cls.name = name  # type: ignore[attr-defined]
            self._parts[name] = cls
            return cls

        return put

    def __getitem__(self, name: str) -> type[T]:
        return self._parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._parts))

    def __len__(self) -> int:
        return len(self._parts)

    def build(self, spec: Any, where: str) -> T:
        """The part that a job's table names, its parameters checked.

        Args:
            spec: `{ name = …, parameters… }`, or the name alone.
            where: the table's place in the job, for the error line.

        Raises:
            UserError: an unknown name or parameter, a wrong type, or a value that the part refuses.
        """
        table = {"name": spec} if isinstance(spec, str) else spec
        if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
            raise UserError(f"{where}: {spec!r} names no {self.kind}; write {{ name = … }} with one of: {', '.join(self)}")
        if table["name"] not in self._parts:
            raise UserError(f"{where}: {nearest(table['name'], self, self.kind)}")
        return checked(self._parts[table["name"]], {k: v for k, v in table.items() if k != "name"}, where)


def parameters(cls: Any) -> list[str]:
    """The fields of a part that a job may set."""
    return [f.name for f in fields(cls) if f.init]


def checked(cls: Callable[..., T], values: Mapping[str, Any], where: str) -> T:
    """A dataclass built from a job's table: unknown keys, wrong types and refused values become one line.

    Raises:
        UserError: naming the key, what was given, and what would do.
    """
    known = parameters(cls)
    for key in values:
        if key not in known:
            raise UserError(f"{where}: {nearest(key, known, 'key')}" if known else f"{where}: '{key}' is not known here")
    try:
        right = _model(cls).model_validate(dict(values))
        return cls(**{key: getattr(right, key) for key in values})
    except ValidationError as error:
        raise UserError(_first(error, values, where)) from None
    except ValueError as error:
        raise UserError(f"{where}: {error}") from None


@cache
def _model(cls: Any) -> type[BaseModel]:
    """The same fields with types checked strictly."""
    hints = get_type_hints(cls, include_extras=True)
    wanted: dict[str, Any] = {
        f.name: (hints[f.name], ... if f.default is MISSING and f.default_factory is MISSING else None)
        for f in fields(cls)
        if f.init
    }
    return create_model(cls.__name__, __config__=ConfigDict(strict=True, arbitrary_types_allowed=True), **wanted)


def _first(error: ValidationError, values: Mapping[str, Any], where: str) -> str:
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


def import_all(package: ModuleType | str) -> None:
    """Import every module of a package, so that the parts in them register themselves."""
    module = importlib.import_module(package) if isinstance(package, str) else package
    for info in pkgutil.iter_modules(module.__path__, module.__name__ + "."):
        importlib.import_module(info.name)
