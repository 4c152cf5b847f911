"""Errors in a user's own parts: one line with the part, the file and the line, in place of a traceback."""

import inspect
import linecache
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

from mpi_compress.core.errors import UserError

SWITCH = "MPI_COMPRESS_TRACEBACK"
_PACKAGE = str(Path(__file__).parents[1])
_PYTHON = (sysconfig.get_path("stdlib"), "<")
INSTALLED = {"site-packages", "dist-packages"}  # folders of any Python, such as the one whose packages an environment takes over


def text_of(error: BaseException) -> str:
    """What to print of an error: one line if it came from a user's part, else its traceback; that always if `SWITCH` is set."""
    where = "" if os.environ.get(SWITCH) else place_in_part(error)
    if not where:
        return "".join(traceback.format_exception(error)).rstrip()
    what = " ".join(str(error).split()) or "without a word"
    return f"{type(error).__name__}: {what}{where}; {SWITCH}=1 prints the traceback"


def place_in_part(error: BaseException) -> str:
    """The last line of a user's part that an error has passed, in brackets, else where the method is written that could not be
    called, or returned what does not do; "" if no part of users took part."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({error.filename}, line {error.lineno})"
    place, called = "", False
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        if code.co_filename.startswith(_PACKAGE):
            called = True
        elif called and is_users_file(code.co_filename):
            source = linecache.getline(code.co_filename, line).strip()
            inside = "" if code.co_name == "<module>" else f", in {code.co_qualname}"
            place = f" ({code.co_filename}, line {line}{inside}" + f": {source}" * bool(source) + ")"
    return place or next(_asked_for(error), "")


def _asked_for(error: BaseException) -> Iterator[str]:
    """Where methods of users' parts are written that this package's lines name which an error has passed, the last ones first; else
    which part took part, unless the error's text names the cause."""
    walked = [*traceback.walk_tb(error.__traceback__)][::-1]
    for frame, number in walked:
        file = frame.f_code.co_filename
        words = re.findall(r"\w+", linecache.getline(file, number)) if file.startswith(_PACKAGE) else []
        here = [frame.f_locals[word] for word in words if word in frame.f_locals]
        held = [one for each in here for one in (each, *getattr(each, "__dict__", {}).values())]
        for cls in dict.fromkeys(base for one in held for base in type(one).__mro__ if not is_ours(base)):
            places = [(word, place_of(vars(cls)[word]) or place_of_class(cls)) for word in words if word in {*vars(cls)} - {"name"}]
            yield from (f"{place[:-1]}, {cls.__name__}.{word})" for word, place in places if place)
    for cls in (type(one) for frame, _ in walked for one in frame.f_locals.values()):
        is_own_part = isinstance(getattr(cls, "name", None), str) and not is_ours(cls)
        if is_own_part and not isinstance(error, UserError) and (place := place_of_class(cls)):
            yield f"{place[:-1]}, perhaps by {cls.__name__})"


def function_of(value: Any) -> FunctionType | None:
    """The function behind a method of any kind or a property."""
    methods = dict.fromkeys((MethodType, staticmethod, classmethod), "__func__")
    name = (methods | {property: "fget", cached_property: "func"}).get(type(value))
    inner = getattr(value, name) if name else value
    return inner if inspect.isfunction(inner) else None


def place_of(method: Any) -> str:
    """Where a method of a user's part is written, in brackets; "" for any other."""
    function = function_of(method)
    code = inspect.unwrap(function).__code__ if function else None
    return f" ({code.co_filename}, line {code.co_firstlineno})" if code is not None and is_users_file(code.co_filename) else ""


def place_of_class(cls: Any) -> str:
    """Where a class is defined, in brackets; "" if it stands in no file."""
    try:
        return f" ({inspect.getsourcefile(cls)}, line {inspect.getsourcelines(cls)[1]})"
    except (OSError, TypeError):
        return ""


def standing(cls: type) -> tuple[str, str]:
    """The file of a class and its name there: what a class has in common with the one that it was before its file was changed. What
    is defined in a session has no name there, since it may be defined again."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    return (file, cls.__qualname__) if file else (cls.__module__, "")


def is_ours(part: Any) -> bool:
    """True if a part, its class, or a module is of this package."""
    name = part.__name__ if inspect.ismodule(part) else (part if isinstance(part, type) else type(part)).__module__
    return name.partition(".")[0] == __name__.partition(".")[0]


def is_users_file(file: str) -> bool:
    """True for a file that is none of this package, of Python's, or installed; nor a compiled module's, whose lines name it as it
    was where it was built, such as numpy/random/_generator.pyx."""
    is_there = os.path.isabs(file) or os.path.exists(file)
    return is_there and not file.startswith((_PACKAGE, *_PYTHON)) and INSTALLED.isdisjoint(Path(file).parts)
