"""The code that decides what a user's part does: its class, and what that uses of the user's modules, found from their syntax."""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import resolve_name
from inspect import getsource
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

from mpi_compress.core.blame import INSTALLED, is_ours
from mpi_compress.core.installed import package_of

WHOLE = "*"  # in place of a name: all of a module

imported: dict[str, str] = {}
"""By a module's file: its source as it was imported."""
_sources: dict[type, str] = {}  # by part


def source_of(part: Any) -> str:
    """The code of a user's part as it was imported: its class, its bases, and the names of modules of the user's that these use,
    after the name and version of the installed package that declares it; "" for a part of this package. A part that is defined in a
    session has no file: a random text distinguishes it from all others."""
    cls = part if isinstance(part, type) else type(part)
    if is_ours(cls):
        return ""
    if cls not in _sources:
        module = sys.modules.get(cls.__module__)
        if module is None or not Path(file_of(module)).is_file():
            _sources[cls] = uuid4().hex
        else:
            _sources[cls] = "".join([package_of(cls.__module__), *_codes(module, cls.__qualname__.partition(".")[0])])
    return _sources[cls]


def file_of(module: ModuleType) -> str:
    return str(getattr(module, "__file__", None) or module.__name__)


def text_of(module: ModuleType) -> str:
    """The source of a module as its file has it now; "" if it cannot be read."""
    try:
        return getsource(module)
    except (OSError, TypeError):
        return ""


def with_helpers(module: ModuleType) -> list[ModuleType]:
    """The modules beside a module that it imports, then the module."""
    found: dict[str, ModuleType] = {}

    def visit(one: ModuleType) -> None:
        if one.__name__ not in found:
            found[one.__name__] = one  # ends circles
            for statement in ast.walk(_tree(one)):
                for used, *_ in _imports(statement, one):
                    visit(used)
            found[one.__name__] = found.pop(one.__name__)  # after what it uses

    visit(module)
    return list(found.values())


def imported_names(module: ModuleType) -> set[str]:
    """The names of modules that a module imports."""
    nodes = [*ast.walk(_tree(module))]
    of_from = {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    return of_from | {each.name for node in nodes if isinstance(node, ast.Import) for each in node.names}


def root_of(module: ModuleType) -> Path:
    """The folder in which Python has found a module, or the package that it is in."""
    file = Path(file_of(module)).resolve()
    depth = len(module.__name__.split(".")) - (file.name != "__init__.py")
    return file.parents[min(depth, len(file.parents) - 1)]


def _codes(module: ModuleType, name: str) -> list[str]:
    """The code of what a name means in a module, and of what that uses, each statement once; of a name that its statements do not
    bind, all of the module."""
    found: dict[tuple[str, int], str] = {}
    is_bound = any(name in _bound(statement) for statement in _statements(module))
    waiting, seen = [(module, name if is_bound else WHOLE)], set[tuple[str, str]]()
    while waiting:
        at, name = waiting.pop()
        if (at.__name__, name) in seen:
            continue
        seen.add((at.__name__, name))
        for i, statement in enumerate(_statements(at)):
            if _bound(statement).isdisjoint({name, WHOLE}) and name != WHOLE:
                continue
            found[at.__name__, i] = _code(statement)
            for node in ast.walk(statement):
                if isinstance(node, ast.Name):
                    waiting.append((at, node.id))
                is_all = node is not statement or name == WHOLE
                waiting += [(m, used) for m, used, by in _imports(node, at) if is_all or by in (name, WHOLE)]
    return [found[key] for key in sorted(found)]


def _statements(module: ModuleType) -> list[ast.stmt]:
    """The statements of a module, texts that stand alone left out."""
    return [each for each in _tree(module).body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a definition or an import binds; WHOLE: perhaps any, as a loop may."""
    match statement:
        case ast.FunctionDef() | ast.ClassDef():
            return {statement.name}
        case ast.Import() | ast.ImportFrom():
            return {_binds(each) for each in statement.names}
        case ast.Assign() | ast.AnnAssign():
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names = {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
            return names if all(isinstance(target, ast.Name | ast.Tuple) for target in targets) else {WHOLE}
    return {WHOLE}


def _binds(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _imports(node: ast.AST, module: ModuleType) -> Iterator[tuple[ModuleType, str, str]]:
    """The modules beside a module that an import in it names, each with the name that is taken from there, or WHOLE, and the name
    that is bound to it."""
    if isinstance(node, ast.Import):
        for each in node.names:
            parts = each.name.split(".")
            for i in range(1, len(parts) + 1):
                yield from ((m, WHOLE, _binds(each)) for m in _beside(module, ".".join(parts[:i])))
    elif isinstance(node, ast.ImportFrom):
        base = resolve_name("." * node.level + (node.module or ""), module.__package__ or None) if node.level else str(node.module)
        for each in node.names:
            yield from ((m, WHOLE, _binds(each)) for m in _beside(module, f"{base}.{each.name}"))
            yield from ((m, each.name, _binds(each)) for m in _beside(module, base))


def _beside(module: ModuleType, name: str) -> list[ModuleType]:
    """The module of that name if it lies beside another one, or below, and is no installed package."""
    other = sys.modules.get(name)
    if other is None or other is module or is_ours(other) or getattr(other, "__file__", None) is None:
        return []
    path, root = Path(file_of(other)).resolve(), root_of(module)
    return [other] if path.is_relative_to(root) and not INSTALLED & {root.name, *path.relative_to(root).parts} else []


def _tree(module: ModuleType) -> ast.Module:
    """The syntax tree of a module as it was imported."""
    return parsed(imported.setdefault(file_of(module), text_of(module)))


parsed = cache(ast.parse)


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
