"""Parts by the names that jobs use.

A part (an algorithm, a compressor, a codec, a cost model, a loss, a data generator) is a frozen dataclass. Its fields are its
parameters, the keys of its table in a job, and what a result stores. It registers itself where it is defined, which makes it a
frozen dataclass if it is none. Its package knows by the text of its modules which of them defines a name, and imports it when the
name is first asked for: a new part is a new file and nothing else.
"""

import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from inspect import isabstract
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Generic, Self, TypeVar, cast, dataclass_transform

from mpi_compress.core.blame import is_ours as is_ours
from mpi_compress.core.blame import place_of_class, standing
from mpi_compress.core.errors import UserError, nearest
from mpi_compress.core.fields import converted, parameters, refuse_out_of_range
from mpi_compress.core.installed import broken, declared, imports
from mpi_compress.core.own_classes import refuse_near_misses, refuse_wrong_facts, state_parameters, stated_defaults
from mpi_compress.core.removed import refuse_key
from mpi_compress.core.returned import check_returned

T = TypeVar("T")
P = TypeVar("P", bound="Part")
C = TypeVar("C", bound=type)
registries: "list[Registry]" = []
_REGISTERED = re.compile(r'^@(\w+)\.register\("([^"]+)"\)', re.MULTILINE)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Part:
    """The base of all contracts of parts."""

    name: ClassVar[str]  # in jobs; `Registry.register` sets it

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not is_ours(cls):
            state_parameters(cls)

    def __post_init__(self) -> None:
        refuse_out_of_range(self)

    def bound_to(self, **known: Any) -> Self:
        """A new part like this one that knows more than its parameters: numbers, links, other parts of a run. This one stays as it
        is. What its cached properties have kept follows from what it knew: the new part computes it again."""
        bound = copy(self)
        for name in vars(self):
            if isinstance(getattr(type(self), name, None), cached_property):
                del vars(bound)[name]
        for name, value in known.items():
            object.__setattr__(bound, name, value)  # the one write to what is frozen, before anyone else has it
        return bound


fact: Callable[[Any], Any] = cached_property
"""What a part states of itself, by a class variable of its contract, where it follows from the part's parameters: `@fact`."""


class Registry(Mapping[str, type[P]], Generic[P]):
    """The parts of one kind, by name.

    Args:
        kind: what users call such a part.
        base: the class that all of them are derived from.
        own: the name of the class that users derive theirs from, if it is not `base`.
    """

    def __init__(self, kind: str, base: Any, own: str = ""):
        self.kind, self.base, self.own = kind, base, own or base.__name__
        self._parts: dict[str, Any] = {}  # of one that nobody has asked for the module that defines it
        registries.append(self)

    def found_in(self, package: str) -> None:
        """Find the parts in the modules of a package and of those within it; a module is imported when a part of it is asked for.
        The package is a `PartsModule` from now on."""
        module = cast(PartsModule, importlib.import_module(package))
        own = next(name for name, held in vars(module).items() if held is self)
        root = Path(module.__path__[0])
        for file in sorted(root.rglob("*.py")):
            path = ".".join([package, *file.relative_to(root).with_suffix("").parts]).removesuffix(".__init__")
            registered = _REGISTERED.findall(file.read_text(encoding="utf-8"))
            self._parts = {name: path for registry, name in registered if registry == own} | self._parts
        module.__class__ = PartsModule
        module.registry, module.register = self, self.register

    def _import(self, name: str) -> None:
        """Import the module of a part that nobody has asked for."""
        if isinstance(module := self._parts.get(name), str):
            importlib.import_module(module)

    def register(self, name: str) -> Callable[[C], C]:
        """Class decorator: jobs find the part under `name`. A class becomes a frozen dataclass. TypeError if
        it is no part of this kind, or a name in it is nearly one of its contract; UserError if another class has the name."""
        if not isinstance(name, str):
            raise TypeError(f'register takes the name that jobs use: @register("my-{self.kind.split()[0]}")')

        def put(cls: C) -> C:
            if not (isinstance(cls, type) and issubclass(cls, self.base)):
                raise TypeError(f"{getattr(cls, '__name__', cls)} is no {self.kind}: derive it from {self.own}")
            part = cast(type[P], cls if "__dataclass_fields__" in vars(cls) else dataclass(frozen=True)(cls))
            part.name = name
            if not is_ours(cls):
                refuse_near_misses(cls)
                check_returned(cls)
                self._refuse_taken(name, cls)
            self._parts[name] = part
            return cls

        return put

    def _refuse_taken(self, name: str, cls: Any) -> None:
        """UserError if another class has the name: not the same one, imported again after it was changed, or defined again in a
        session."""
        self._import(name)
        other = self._parts.get(name)
        if other is not None and standing(other) != standing(cls):
            both = " and ".join(f"{each.__name__}{place_of_class(each)}" for each in (other, cls))
            raise UserError(f"two classes are the {self.kind} '{name}': {both}; give one of them another name")

    def forget(self, module: str) -> None:
        """Remove the parts of a module, which is about to be imported again, perhaps with other names."""
        self._parts = {name: part for name, part in self._parts.items() if getattr(part, "__module__", "") != module}

    def knows(self, name: str) -> bool:
        """True if a part has this name, of an installed package, too, which is imported then; UserError if two packages have it."""
        self._import(name)
        if name not in self._parts:
            for entry in [entry for entry in declared() if entry.name == name] or declared():
                imports(entry)
        return name in self._parts

    def lacks(self, name: Any) -> str:
        """The error for a name that no part has: the nearest right one, and packages that might have it and are broken."""
        return "; ".join([nearest(str(name), self, self.kind), *broken.values()])

    def __getitem__(self, name: str) -> type[P]:
        """The part's class; KeyError with the nearest right name."""
        if not self.knows(name):
            raise KeyError(self.lacks(name))
        return self._parts[name]

    def __contains__(self, name: object) -> bool:
        return name in self._parts

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._parts))

    def __len__(self) -> int:
        return len(self._parts)

    def build(self, spec: Any, where: str) -> P:
        """Build the part that a job's table names, with checked parameters.

        Args:
            spec: `{ name = …, parameters… }`, or the name alone.
            where: the table's place in the job, for the error line.

        Raises:
            UserError: an unknown name or parameter, a wrong type, or a value that the part refuses.
        """
        table = {"name": spec} if isinstance(spec, str) else spec
        if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
            raise UserError(f"{where}: {spec!r} names no {self.kind}; write {{ name = … }} with one of: {', '.join(self)}")
        if not self.knows(table["name"]):
            raise UserError(f"{where}: {self.lacks(table['name'])}")
        return checked(self._parts[table["name"]], {k: v for k, v in table.items() if k != "name"}, where)


def record(part: Any) -> Any:
    """A part as JSON: its name and every field, defaults and the parts within it included."""
    match part:
        case Part():
            return {"name": part.name, **{name: record(getattr(part, name)) for name in parameters(type(part))}}
        case Mapping():
            return {str(key): record(value) for key, value in part.items()}
        case list() | tuple():
            return [record(each) for each in part]
        case None | bool() | int() | float() | str():
            return part
    return str(part)


class PartsModule(ModuleType, Mapping[str, type[Part]]):
    """A package of parts, which is a mapping as its registry is: `compressors["top-k"]`, `list(compressors)`."""

    __eq__, __hash__ = ModuleType.__eq__, ModuleType.__hash__
    registry: "Registry[Any]"
    register: Callable[[str], Callable[[Any], Any]]  # the registry's

    def __getitem__(self, name: str) -> type[Part]:
        return self.registry[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.registry)

    def __len__(self) -> int:
        return len(self.registry)


def with_inner(parts: Iterable[Any]) -> Iterator[Any]:
    """These parts, None left out, each once, with the parts that it holds, such as an estimator's server."""
    waiting, found = [part for part in parts if part is not None], set[int]()
    for part in waiting:
        if id(part) not in found:
            found.add(id(part))
            yield part
            waiting += [inner for inner in vars(part).values() if isinstance(inner, Part)]


def checked(cls: Callable[..., T], values: Mapping[str, Any], where: str) -> T:
    """Build a dataclass from a job's table; UserError for an unknown key, a wrong type or a refused value, in one line: the key,
    what was given, and what would do."""
    known = parameters(cls)
    for key in values:
        if key not in known:
            if not is_ours(cls) and hasattr(cls, key):
                untyped = f"{cls.__name__} has no parameter '{key}': a parameter is a field with its type, {key}: float = …"
                untyped += place_of_class(cls)
                raise UserError(f"{where}: {untyped}")
            raise refuse_key(where, key, known)
    right = converted(cls, values if is_ours(cls) else stated_defaults(cls) | {**values}, where)
    try:
        built = cls(**right)
    except (ValueError, TypeError) as error:
        if isinstance(error, TypeError) and not isabstract(cls):
            raise
        raise UserError(f"{where}: {error}") from None
    if not is_ours(cls) and isinstance(built, Part):
        refuse_wrong_facts(built, where)
    return built
