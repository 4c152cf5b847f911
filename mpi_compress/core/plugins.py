"""Modules of users' parts: they are found, imported again when they have changed, and distinguished by their source.

They import each other by plain names, and two jobs' folders may have a `helper` each. Python looks for such a name in `sys.modules`
and along `sys.path`, and tells no finder which module asks: so these two are set for the job whose plugins are imported or run.
"""

import ast
import importlib
import re
import shutil
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from inspect import getsource, ismodule
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

from mpi_compress.core import installed
from mpi_compress.core.blame import is_users_file, place_in_part
from mpi_compress.core.errors import UserError
from mpi_compress.core.registry import Part, is_ours, registries

_PYTHON = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))  # where modules are that no file beside a job hides
_imported: dict[str, str] = {}  # by a module's file: its source as it was imported
_plugins: "dict[tuple[str, Path], _Plugin]" = {}  # by name and the folder of the job
_of_jobs: set[str] = set()  # modules that jobs have brought in, and no session
_sources: dict[type, str] = {}  # by part: the code of all its modules


@dataclass
class _Plugin:
    """A module of users' parts as a job has imported it.

    Args:
        places: where it and the modules that it uses are looked for, in order.
        modules: those beside it that it uses, then the module.
        parts: by kind, then by module and name, those that all of them have registered.
    """

    places: list[Path]
    modules: list[ModuleType]
    parts: dict[str, dict[tuple[str, str], type[Part]]]

    def bring_back(self) -> None:
        """Let imports find its modules, if those of another job or plugin have their names now."""
        if _first_places(self.places) or any(sys.modules.get(m.__name__) is not m for m in self.modules):
            _leave_out_others(self.places)
            for m in self.modules:
                sys.modules[m.__name__] = m
            for registry in registries:
                registry.put_back({m.__name__ for m in self.modules}, self.parts.get(registry.kind, {}))


def import_plugins(names: Any, folder: Path, frozen: Path | None = None) -> None:
    """Import a job's [plugins], modules frozen with the job, in the current folder, beside the job, or installed; UserError, with
    the file and the line, if one of them cannot be imported."""
    places = (Path.cwd(), folder.resolve())
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
            raise UserError(f"plugins: {_why_not(name, error)}") from error


def _why_not(name: str, error: BaseException) -> str:
    """Why a module of users' parts could not be imported, and where it says so."""
    place = place_in_part(error)
    if isinstance(error, ModuleNotFoundError):
        return f"no module '{error.name}' here, beside the job, or installed{place}"
    how = "ends the program" if isinstance(error, SystemExit) else "fails"
    return f"module '{name}' {how} on import: {type(error).__name__}: {' '.join(str(error).split())}{place}"


def import_plugin(name: str, places: Sequence[Path]) -> None:
    """Import a module of users' parts from the first of `places` that has it, or as it is installed.

    Modules that it imports are looked for beside it first, whatever modules of their names other plugins have imported. If the
    module, or one beside it that it uses, has changed since it was imported, all of them are imported again. From now on names
    mean the parts of this module.

    Args:
        places: folders; the last one is the job's.
    """
    beside = [place for place in places if any(file.exists() for file in _files(place, name))][:1]
    ordered = [*dict.fromkeys([*beside, *places])]
    if name in (known := {n: p for (n, _), p in _plugins.items() if p.places == ordered}):
        known[name].bring_back()
    _first_places(ordered)
    _leave_out_others(ordered)
    before = _registering()
    module = importlib.import_module(name)
    _of_jobs.update(_registering() - before)
    modules = _with_helpers(module)
    if [_imported.setdefault(_file(m), _source(m)) for m in modules] != [_source(m) for m in modules]:
        for m in modules:
            for registry in registries:
                registry.forget(m.__name__)
            importlib.reload(m)
            _imported[_file(m)] = _source(m)
    _plugins.pop((name, places[-1]), None)  # the last one is the one that was imported last
    parts = {r.kind: {key: part for m in modules for key, part in r.registered_in(m.__name__).items()} for r in registries}
    _plugins[name, places[-1]] = _Plugin(ordered, modules, parts)
    prefer([name], places[-1])
    for registry in registries:
        for part in registry.values():
            source_of(part)  # noted now: the file may change later


def prefer(names: Iterable[str], folder: Path) -> None:
    """Let names of parts mean those of the plugins of a job in this folder, modules beside and inside them included. Where the
    current folder has changed since, a plugin is the last one of its name that was imported."""
    at, last = folder.resolve(), {name: plugin for (name, _), plugin in _plugins.items()}
    known = [_plugins.get((name, at), last[name]) for name in names if name in last]
    for plugin in known:
        plugin.bring_back()
    for registry in registries:
        parts = [plugin.parts.get(registry.kind, {}) for plugin in known]
        registry.prefer([{name: part for (_, name), part in each.items()} for each in parts], _of_jobs)


def parts_of_plugins(names: Iterable[str], folder: Path) -> dict[str, dict[str, type[Part]]]:
    """By kind, such as "compressor", the parts of the plugins that a job in this folder has imported."""
    plugins = [_plugins[name, folder.resolve()] for name in names]
    return {r.kind: {name: part for plugin in plugins for (_, name), part in plugin.parts[r.kind].items()} for r in registries}


def _first_places(places: Sequence[Path]) -> bool:
    """Let imports look in these places first, but for Python's own modules; False if they do so already."""
    own = [place for place in sys.path if place.removesuffix("/lib-dynload") in _PYTHON]
    wanted = [*dict.fromkeys([*own, *map(str, places), *sys.path])]
    changed, sys.path[:] = wanted != sys.path, wanted
    return changed


def _leave_out_others(places: Sequence[Path]) -> None:
    """Let names that a module in these places has mean that module, not another one of the name that was imported before."""
    for name, module in [*sys.modules.items()]:
        file = getattr(module, "__file__", None)
        if "." in name or not file or not is_users_file(file) or name == "__main__":
            continue
        here = next((file for place in places for file in _files(place, name) if file.exists()), None)
        if here and not (Path(file).exists() and here.samefile(file)):
            for other in [m for m in sys.modules if f"{m}.".startswith(f"{name}.")]:
                del sys.modules[other]
                for registry in registries:
                    registry.forget(other)


def _registering() -> set[str]:
    """The modules that have registered parts."""
    return set().union(*(registry.modules() for registry in registries))


def freeze_plugin(name: str, folder: Path) -> None:
    """Copy the source of an imported module of users' parts, and of the modules beside it that it uses, into a folder. Each keeps
    its whole path below `folder`, so that modules find each other as before. Of a package all modules are copied. If a module looks
    for files by its own place, what lies beside it is linked. Installed packages are not copied."""
    copied: dict[Path, Path] = {}
    for module in _with_helpers(sys.modules[name]):
        file = Path(str(module.__file__)).resolve()
        if not {"site-packages", "dist-packages"} & set(file.parts):
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
    for module in _with_helpers(sys.modules[name]):
        file = Path(str(module.__file__))
        found["/".join(module.__name__.split(".")) + ("/__init__.py" if file.name == "__init__.py" else ".py")] = file
    return found


def _beside_in_package(module: ModuleType, file: Path, folder: Path) -> Iterator[Path]:
    """The file of a module; of one in a package, those of all modules there but what is frozen below `folder`'s parent."""
    depth = len(module.__name__.split(".")) - (file.name != "__init__.py")
    top = file.parents[depth - 1] if depth > 0 else file
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


def source_of(part: Any) -> str:
    """The code of the modules of a user's part as they were imported, after the name and version of the installed package that
    declares them; "" for a part of this package. A part that is defined in a session has no file: a random text distinguishes it
    from all others."""
    cls = part if isinstance(part, type) else type(part)
    if is_ours(cls):
        return ""
    if cls not in _sources:
        module = sys.modules.get(cls.__module__)
        if module is None or not Path(getattr(module, "__file__", None) or "?").is_file():
            _sources[cls] = uuid4().hex
        else:
            codes = (_code(ast.parse(_imported.setdefault(_file(m), _source(m)))) for m in _with_helpers(module))
            _sources[cls] = "".join([installed.package_of(cls.__module__), *codes])
    return _sources[cls]


def _code(part: Any) -> str:
    """What a syntax tree says to Python, without comments, docstrings, blank lines and layout. Bytecode would differ from one
    version of Python to the next; of a tree that is so only of empty fields, which are left out."""
    match part:
        case ast.AST():
            within = [f"{name}={_code(value)}" for name, value in ast.iter_fields(part) if value is not None and value != []]
        case [ast.Expr(ast.Constant(str())), *others] | [*others]:
            within = [_code(each) for each in others]
        case _:
            return repr(part)
    return f"{type(part).__name__}({', '.join(within)})"


def _files(place: Path, name: str) -> Iterator[Path]:
    """The files in which a place may have a module."""
    path = place.joinpath(*name.split("."))
    yield path.with_name(f"{path.name}.py")
    yield path / "__init__.py"


def _with_helpers(module: ModuleType) -> list[ModuleType]:
    """The modules beside a module that it uses, then the module."""
    found: dict[str, ModuleType] = {}
    folder = Path(str(module.__file__)).resolve().parent

    def visit(one: ModuleType) -> None:
        if one.__name__ in found or (one is not module and not _is_below(one, folder)):
            return
        found[one.__name__] = one  # ends circles
        for value in [*vars(one).values()]:
            used = value if ismodule(value) else sys.modules.get(str(getattr(value, "__module__", "")))
            if isinstance(used, ModuleType):
                visit(used)
        found[one.__name__] = found.pop(one.__name__)  # after what it uses

    visit(module)
    return list(found.values())


def _is_below(module: ModuleType, folder: Path) -> bool:
    """True if a module lies in a folder or below, and is no installed package."""
    file = getattr(module, "__file__", None)
    if file is None or is_ours(module):
        return False
    path = Path(file).resolve()
    return path.is_relative_to(folder) and not {"site-packages", "dist-packages"} & {folder.name, *path.relative_to(folder).parts}


def _file(module: ModuleType) -> str:
    return str(getattr(module, "__file__", None) or module.__name__)


def _source(module: ModuleType) -> str:
    """The source of a module as its file has it now; "" if it cannot be read."""
    try:
        return getsource(module)
    except (OSError, TypeError):
        return ""
