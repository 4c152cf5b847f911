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
from inspect import isabstract
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from mpi_compress.core.errors import UserError, nearest

T = TypeVar("T")
C = TypeVar("C", bound=type)


registries: "list[Registry]" = []


class Registry(Mapping[str, type[T]], Generic[T]):
    """The parts of one kind, by name.

    Args:
        kind: what users call such a part.
        base: the class that all of them derive from.
    """

    def __init__(self, kind: str, base: Any):
        self.kind, self.base = kind, base
        self._parts: dict[str, type[T]] = {}
        self._of_modules: dict[tuple[str, str], type[T]] = {}  # by module and name, those that another job's plugin hides too
        registries.append(self)

    def register(self, name: str) -> Callable[[C], C]:
        """Class decorator: the part is found under `name` in jobs.

        Raises:
            TypeError: what is decorated is no such part.
            ValueError: the name is that of a part of this package.
        """
        if not isinstance(name, str):
            raise TypeError(f'register takes the name that jobs use: @register("my-{self.kind.split()[0]}")')

        def put(cls: C) -> C:
            if not (isinstance(cls, type) and issubclass(cls, self.base)):
                raise TypeError(f"{getattr(cls, '__name__', cls)} is no {self.kind}: derive it from {self.base.__name__}")
            if is_ours(self._parts.get(name)) and not is_ours(cls):
                raise ValueError(f"'{name}' is the name of a {self.kind} of mpi_compress; give {cls.__name__} another")
            cls.name = name  # type: ignore[attr-defined]
            self._parts[name] = self._of_modules[cls.__module__, name] = cls
            return cls

        return put

    def forget(self, module: str) -> None:
        """A module is about to be imported anew, perhaps with other names."""
        for of, name in [key for key in self._of_modules if key[0] == module]:
            if self._parts.get(name) is self._of_modules.pop((of, name)):
                del self._parts[name]

    def prefer(self, module: str) -> None:
        """Let names mean the parts that a module, or one of its package, registers."""
        self._parts |= {name: cls for (m, name), cls in self._of_modules.items() if f"{m}.".startswith(f"{module}.")}

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


def is_ours(part: Any) -> bool:
    """Whether a part, or its class, is of this package."""
    cls = part if isinstance(part, type) else type(part)
    return cls.__module__.partition(".")[0] == __name__.partition(".")[0]


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
            if not is_ours(cls) and hasattr(cls, key):
                raise UserError(f"{where}: {_undeclared(cls, key)}")
            raise UserError(f"{where}: {nearest(key, known, 'key')}" if known else f"{where}: '{key}' is not known here")
    try:
        hints = get_type_hints(cls)
        right = _model(cls).model_validate({key: _suited(value, hints[key]) for key, value in values.items()})
        return cls(**{key: getattr(right, key) for key in values})
    except ValidationError as error:
        raise UserError(_first(error, values, where)) from None
    except ValueError as error:
        raise UserError(f"{where}: {error}") from None
    except TypeError as error:
        if not isabstract(cls):
            raise
        raise UserError(f"{where}: {error}") from None


def _suited(value: Any, hint: Any) -> Any:
    """A value as TOML has it, as a part may want it: an array as a tuple, text as a path."""
    if isinstance(value, list) and get_origin(hint) is tuple:
        return tuple(value)
    return Path(value) if isinstance(value, str) and hint is Path else value


def _undeclared(cls: Any, key: str) -> str:
    """Why an attribute of somebody's part is no parameter."""
    if "__dataclass_fields__" not in vars(cls):
        return f"{cls.__name__} has parameters, and is no dataclass: put @dataclass(frozen=True) above the class"
    return f"'{key}' of {cls.__name__} is no parameter as it is written: give it its type, as {key}: float = …"


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
