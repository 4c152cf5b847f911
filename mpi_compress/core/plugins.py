"""Modules of users' parts: they are found beside a job, in the current folder or installed, and imported again if they changed."""

import importlib
import re
import shutil
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path
from types import ModuleType
from typing import Any

from mpi_compress.core.blame import INSTALLED, is_users_file, place_in_part
from mpi_compress.core.errors import UserError, likely_name
from mpi_compress.core.registry import Part, registries
from mpi_compress.core.sources import file_of, imported, imported_names, root_of, source_of, text_of, with_helpers

_PYTHON = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))  # where modules are that no file beside a job hides


def import_plugins(names: Any, folder: Path, frozen: Path | None = None) -> None:
    """Import a job's [plugins], modules frozen with the job, beside the job, in the current folder, or installed; UserError, with
    the file and the line, if one of them cannot be imported."""
    places = (folder.resolve(), Path.cwd())
    if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
        raise UserError(f'plugins: {names!r} was given; it should be a list of module names, ["my_module"]')
    for name in names:
        if not re.fullmatch(r"[\w-]+(\.[\w-]+)*", name):
            raise UserError(f'plugins: {name!r} was given; a module\'s name is required, such as "my_module" for my_module.py')
        if (stem := name.removesuffix(".py")) != name:
            raise UserError(f'plugins: "{name}" was given; a module is named without .py: "{stem}"')
        if name in sys.stdlib_module_names:
            raise UserError(f"plugins: '{name}' is a module of Python; give the file another name")
        try:
            import_plugin(name, (*frozen_places(places, frozen), *places) if frozen else places)
        except (Exception, SystemExit) as error:
            raise UserError(f"plugins: {_why_not(name, error, places)}") from error


def _why_not(name: str, error: BaseException, places: Iterable[Path]) -> str:
    """Why a module of users' parts could not be imported, and where it says so."""
    place = place_in_part(error)
    if isinstance(error, UserError):
        return f"{error}{place}"
    if isinstance(error, ModuleNotFoundError):
        text = f"no module '{error.name}' here, beside the job, or installed"
        likely = likely_name(name, (file.stem for folder in places for file in folder.glob("*.py")), 0.75)
        return text + (place if error.name != name else f"; did you mean '{likely}'?" * bool(likely))
    how = "ends the program" if isinstance(error, SystemExit) else "fails"
    return f"module '{name}' {how} on import: {type(error).__name__}: {' '.join(str(error).split())}{place}"


def import_plugin(name: str, places: Sequence[Path]) -> None:
    """Import a module of users' parts from the first of `places` that has it, or as it is installed.

    Modules that it imports are looked for beside it first; one in a package may import its neighbours by their plain names. If the
    module, or one beside it that it imports, has changed since it was imported, all of them are imported again. UserError: a module
    of one of these names, in another file, was imported before.
    """
    beside = [place for place in places if any(file.exists() for file in _files(place, name))][:1]
    inside = [place.joinpath(*name.split(".")[:-1]) for place in beside]
    ordered = [*dict.fromkeys([*beside, *places, *inside])]
    _look_first_in(ordered)
    _forget_what_is_gone(ordered)
    modules = with_helpers(importlib.import_module(name))
    _refuse_others(modules, ordered)
    if [imported.setdefault(file_of(m), text_of(m)) for m in modules] != [text_of(m) for m in modules]:
        for m in modules:
            _forget(m.__name__)
            with suppress(OSError):  # Python takes compiled code for new where an edit keeps the size within a second
                Path(cache_from_source(str(m.__file__))).unlink()
        for m in modules:
            importlib.reload(m)
            imported[file_of(m)] = text_of(m)
    for registry in registries:
        for part in registry.values():
            source_of(part)  # noted now: the file may change later


def parts_of_plugins(names: Iterable[str]) -> dict[str, dict[str, type[Part]]]:
    """By kind, such as "compressor", the parts of plugins that a job has imported, and of modules beside them."""
    modules = {m.__name__ for name in names for m in with_helpers(sys.modules[name])}
    return {r.kind: {name: part for name, part in r.items() if part.__module__ in modules} for r in registries}


def _look_first_in(places: Sequence[Path]) -> None:
    """Let imports look in these places first, but for Python's own modules."""
    own = [place for place in sys.path if place.removesuffix("/lib-dynload") in _PYTHON]
    sys.path[:] = dict.fromkeys([*own, *map(str, places), *sys.path])


def _forget_what_is_gone(places: Sequence[Path]) -> None:
    """Let modules be imported again whose files are gone and lie elsewhere now, as after a frozen copy was removed."""
    for name, module in [*sys.modules.items()]:
        file = getattr(module, "__file__", None)
        gone = name != "__main__" and file and is_users_file(file) and not Path(file).exists()
        if gone and any(there.exists() for place in places for there in _files(place, name)):
            del sys.modules[name]
            _forget(name)


def _refuse_others(modules: Sequence[ModuleType], places: Sequence[Path]) -> None:
    """UserError if a plugin, or what it imports, is another module than the one of its name that lies beside it."""
    for name in dict.fromkeys(name for one in modules[::-1] for name in (one.__name__, *sorted(imported_names(one)))):
        file = getattr(sys.modules.get(name), "__file__", None)
        here = next((file for place in places for file in _files(place, name) if file.exists()), None)
        if file and here and is_users_file(file) and here.read_bytes() != Path(file).read_bytes():
            raise UserError(f"two modules are called '{name}': {file} and {here}; give one of them another name")


def _forget(module: str) -> None:
    """Let the parts of a module be unknown, which is about to be imported again, perhaps with other names."""
    for registry in registries:
        registry.forget(module)


def freeze_plugin(name: str, folder: Path) -> None:
    """Copy the source of an imported module of users' parts, and of the modules beside it that it uses, into a folder. Each keeps
    its whole path below `folder`, so that modules find each other as before. Of a package all modules are copied. If a module looks
    for files by its own place, what lies beside it is linked. Installed packages are not copied."""
    copied: dict[Path, Path] = {}
    for module in with_helpers(sys.modules[name]):
        file = Path(str(module.__file__)).resolve()
        if INSTALLED.isdisjoint(file.parts):
            copied |= {source: frozen_place(source, folder) for source in _beside_in_package(module, file, folder)}
    for source, copy in copied.items():
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
    for source, copy in copied.items():
        if b"__file__" in source.read_bytes():
            _link_beside(source, copy)


def sources(name: str) -> dict[str, Path]:
    """The files of an imported module of users' parts and of those beside it that it uses, by their paths as imports name them."""
    found = {}
    for module in with_helpers(sys.modules[name]):
        file = Path(str(module.__file__))
        found[module.__name__.replace(".", "/") + ("/__init__.py" if file.name == "__init__.py" else ".py")] = file
    return found


def _beside_in_package(module: ModuleType, file: Path, folder: Path) -> Iterator[Path]:
    """The file of a module; of one in a package, those of all modules there but what is frozen below `folder`'s parent."""
    package, *others = file.relative_to(root_of(module)).parts
    top = root_of(module) / package if others else file
    kept = folder.resolve().parent
    yield from (f for f in top.rglob("*.py") if not f.is_relative_to(kept)) if top.is_dir() else (file,)


def frozen_places(places: Iterable[Path], folder: Path) -> list[Path]:
    """Where below a folder `freeze_plugin` has put the modules of these places, and of those that Python searches."""
    frozen = dict.fromkeys(frozen_place(place.resolve(), folder) for place in (*places, *map(Path, sys.path)))
    return [place for place in frozen if place.is_dir()]


def frozen_place(path: Path, folder: Path) -> Path:
    """The copy of a file or folder below `folder`."""
    return folder / "plugins" / path.relative_to(path.anchor)


def _link_beside(source: Path, copy: Path) -> None:
    """Link what lies beside a module and was not copied, beside its copy."""
    for other in source.parent.iterdir():
        there = copy.with_name(other.name)
        if other.suffix != ".py" and other.name != "__pycache__" and not there.exists():
            there.symlink_to(other)


def _files(place: Path, name: str) -> Iterator[Path]:
    """The files in which a place may have a module."""
    path = place.joinpath(*name.split("."))
    yield path.with_name(f"{path.name}.py")
    yield path / "__init__.py"
