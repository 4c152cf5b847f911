"""Modules of users' own parts: found, imported anew where they have changed, and told apart by their source."""

import importlib
import sys
from collections.abc import Iterator, Sequence
from inspect import getsource, ismodule
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

from mpi_compress.core.registry import is_ours, registries

_imported: dict[str, str] = {}  # modules with their source as it was imported
_sources: dict[type, str] = {}  # parts, with what decides what they do


def import_plugin(name: str, places: Sequence[Path]) -> None:
    """Import a module of somebody's parts, from the first of some places that has it, or where it is installed.

    What has changed since it was imported, among it or the modules beside it that it uses, is imported anew; names mean its parts
    from now on.
    """
    sys.path[:] = [*map(str, places), *(place for place in sys.path if place not in map(str, places))]
    here = next((file for place in places for file in _files(place, name) if file.exists()), None)
    known = getattr(sys.modules.get(name), "__file__", None)
    if here and known and not here.samefile(known):
        for other in [m for m in sys.modules if f"{m}.".startswith(f"{name}.")]:  # another job's, of the same name
            del sys.modules[other]
            _imported.pop(other, None)
    module = importlib.import_module(name)
    modules = _with_helpers(module)
    if [_imported.setdefault(m.__name__, _source(m)) for m in modules] != [_source(m) for m in modules]:
        for m in modules:
            for registry in registries:
                registry.forget(m.__name__)
            importlib.reload(m)
            _imported[m.__name__] = _source(m)
    for registry in registries:
        registry.prefer(name)
        for part in registry.values():
            source_of(part)  # as it is now: what is saved or loaded later is another part's


def source_of(part: Any) -> str:
    """What decides what somebody's part does: the source of its modules as they were imported; "" for this package's own.

    A part that a session defines has no source to go by: it is told from all others.
    """
    cls = part if isinstance(part, type) else type(part)
    if is_ours(cls):
        return ""
    if cls not in _sources:
        module = sys.modules.get(cls.__module__)
        if module is None or not Path(getattr(module, "__file__", None) or "?").is_file():
            _sources[cls] = uuid4().hex
        else:
            _sources[cls] = "".join(_imported.setdefault(m.__name__, _source(m)) for m in _with_helpers(module))
    return _sources[cls]


def _files(place: Path, name: str) -> Iterator[Path]:
    """Where a place would have a module."""
    path = place.joinpath(*name.split("."))
    yield path.with_name(f"{path.name}.py")
    yield path / "__init__.py"


def _with_helpers(module: ModuleType) -> list[ModuleType]:
    """A module, after those beside it that it uses."""
    found: dict[str, ModuleType] = {}
    folder = Path(str(module.__file__)).resolve().parent

    def visit(one: ModuleType) -> None:
        if one.__name__ in found or (one is not module and not _is_below(one, folder)):
            return
        found[one.__name__] = one  # keeps circles from going round
        for name in {v.__name__ if ismodule(v) else str(getattr(v, "__module__", "")) for v in vars(one).values()}:
            if isinstance(used := sys.modules.get(name), ModuleType):
                visit(used)
        found[one.__name__] = found.pop(one.__name__)  # after what it uses

    visit(module)
    return list(found.values())


def _is_below(module: ModuleType, folder: Path) -> bool:
    """Whether a module lies in a folder or below, and is no installed package."""
    file = getattr(module, "__file__", None)
    if file is None or module.__name__.partition(".")[0] == __name__.partition(".")[0]:
        return False
    path = Path(file).resolve()
    return path.is_relative_to(folder) and not {"site-packages", "dist-packages"} & {folder.name, *path.relative_to(folder).parts}


def _source(module: ModuleType) -> str:
    """The source of a module as it is in its file now; "" where there is none to read."""
    try:
        return getsource(module)
    except (OSError, TypeError):
        return ""
