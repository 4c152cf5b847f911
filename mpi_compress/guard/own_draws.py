"""Calls in the code of users' parts that return something else each time: generators without a seed, those that all parts of a
process share, clocks, and random bytes of the system. They are found in the syntax, which costs a round nothing."""

import ast
import linecache
import random
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from inspect import isclass, ismodule
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from mpi_compress.core.sources import imported

_CLOCKS = ("time", "monotonic", "perf_counter", "process_time", "thread_time")
_ALWAYS = {
    *(f"time.{name}{unit}" for name in _CLOCKS for unit in ("", "_ns")), "datetime.now", "datetime.today", "datetime.utcnow",
    "posix.urandom", "nt.urandom", "uuid.uuid1", "uuid.uuid4",
}  # fmt: skip
_SHARED = {id(getattr(function, "__self__", None)) for function in (random.random, np.random.rand)}  # by all parts of a process


def unrepeatable(functions: Iterable[FunctionType]) -> list[str]:
    """What functions call so, each once: with the file, the line, and the function."""
    return [*dict.fromkeys(call for each in functions for call in _calls(each))]


def _calls(function: FunctionType) -> Iterator[str]:
    code = function.__code__
    for body in _functions(_source(code.co_filename)).get(code.co_firstlineno, ()):
        nodes = [*ast.walk(body)]
        known = _known(function, nodes)
        for node in nodes:
            if isinstance(node, ast.Call) and _varies(_meaning(node.func, known), node):
                yield f"{ast.unparse(node.func)}() ({Path(code.co_filename).name}, line {node.lineno}, in {code.co_qualname})"


def _varies(called: Any, call: ast.Call) -> bool:
    """True if a call returns something else each time."""
    owner = getattr(called, "__self__", None)
    module = getattr(called, "__module__", None) or getattr(owner, "__module__", None) or ""
    given = [*call.args, *(each.value for each in call.keywords)]
    without_seed = all(isinstance(each, ast.Constant) and each.value is None for each in given)
    takes_seed = module == "random" or module.startswith("numpy.random")
    named = f"{module}.{getattr(called, '__name__', '')}"
    is_shared = owner is not None and id(owner) in _SHARED
    return is_shared or named in _ALWAYS or module == "secrets" or (takes_seed and without_seed)


def _meaning(node: ast.AST, known: Mapping[str, Any]) -> Any:
    """What a name, or an attribute of a module or a class, stands for; None: that is not known before it runs."""
    match node:
        case ast.Name():
            return known.get(node.id)
        case ast.Attribute():
            owner = _meaning(node.value, known)
            return getattr(owner, node.attr, None) if ismodule(owner) or isclass(owner) else None
    return None


def _known(function: FunctionType, nodes: Sequence[ast.AST]) -> Mapping[str, Any]:
    """What names stand for in a function: those of its module and around it, but for its own variables, and what it imports."""
    code, found = function.__code__, {**function.__globals__}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # it has no value yet
            found[name] = cell.cell_contents
    for name in _variables(code):
        found.pop(name, None)
    for node in nodes:
        for each in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            if isinstance(node, ast.ImportFrom):
                found[each.asname or each.name] = getattr(sys.modules.get(str(node.module)), each.name, None)
            else:
                top = each.name.partition(".")[0]
                found[each.asname or top] = sys.modules.get(each.name if each.asname else top)
    return found


def _variables(code: CodeType) -> Iterator[str]:
    """The variables of a function, and of those within it."""
    yield from code.co_varnames
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _variables(inner)


def _source(file: str) -> str:
    """The text of a module as it was imported; of a session the cell's."""
    return imported.get(file) or "".join(linecache.getlines(file))


@cache
def _functions(source: str) -> Mapping[int, Sequence[ast.AST]]:
    """The functions in a text, by their first lines, those of decorators included."""
    found = defaultdict[int, list[ast.AST]](list)
    with suppress(SyntaxError):  # a session's own syntax
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                found[min(each.lineno for each in (node, *getattr(node, "decorator_list", ())))].append(node)
    return found
