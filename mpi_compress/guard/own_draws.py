"""Calls in the code of users' parts that return something else each time: generators without a seed, those that all parts of a
process share, clocks, and random bytes of the system. They are found in the syntax, which costs a round nothing."""

import ast
import linecache
import random
import sys
from collections.abc import Iterable, Iterator, Mapping
from inspect import getblock, isclass, ismodule
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from mpi_compress.core.sources import imported, parsed

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
    code, first = function.__code__, function.__code__.co_firstlineno
    source = imported.get(code.co_filename) or "".join(linecache.getlines(code.co_filename))  # the file may have changed since
    within = range(first, first + len(getblock(source.splitlines(keepends=True)[first - 1 :])))
    known = {name: held for name, held in function.__globals__.items() if name not in code.co_varnames}
    for node in (each for each in ast.walk(parsed(source)) if getattr(each, "lineno", 0) in within):
        match node:
            case ast.Import():
                known |= {each.asname or each.name: sys.modules.get(each.name) for each in node.names}
            case ast.ImportFrom():
                module = sys.modules.get(str(node.module))
                known |= {each.asname or each.name: getattr(module, each.name, None) for each in node.names}
            case ast.Call() if _varies(_meaning(node.func, known), node):
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
