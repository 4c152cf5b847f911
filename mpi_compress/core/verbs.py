"""Names in a user's part that are nearly those of verbs: such a method would never be called, and says so as the class is made."""

import linecache
from collections.abc import Iterator
from difflib import get_close_matches
from inspect import getattr_static
from types import CodeType
from typing import Any

_NEAR = 0.85  # of letters in common: worker_send and worker_sends have 0.96, start_worker and start_master 0.58
_SHORT = 4  # letters of a name that says nothing by being near another


def refuse_near_misses(cls: Any) -> None:
    """TypeError if a user's class has a method that is nearly a verb of its contract, not that verb, and no call of the method."""
    contract = {name for each in cls.__mro__ if _is_ours(each) for name in vars(each)}
    own = [each for each in cls.__mro__ if not _is_ours(each) and each.__module__ not in ("abc", "builtins", "typing")]
    defined = {name for each in own for name in vars(each)}
    verbs = [name for name in contract - defined if not name.startswith("_") and len(name) > _SHORT]
    used = {name for each in own for value in vars(each).values() for name in _names_in(value)}
    for each in own:
        for name, value in vars(each).items():
            code = _code_of(value)
            if code is None or name.startswith("_") or name in used or name in contract:
                continue
            anagrams = [verb for verb in verbs if sorted(verb) == sorted(name)]  # dleta
            for verb in (anagrams or get_close_matches(name, verbs, n=1, cutoff=_NEAR))[:1]:
                where = f"{code.co_filename}, line {_line_of(code)}"
                raise TypeError(f"{cls.__name__}.{name} is called by nothing; did you mean {verb}? ({where})")


def _is_ours(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == __name__.partition(".")[0]


def _line_of(code: CodeType) -> int:
    """The line of the method's `def`, below its decorators."""
    line = code.co_firstlineno
    while linecache.getline(code.co_filename, line).lstrip().startswith("@"):
        line += 1
    return line


def _code_of(value: Any) -> CodeType | None:
    for inner in (value, *(getattr_static(value, name, None) for name in ("__func__", "fget", "func"))):
        if isinstance(code := getattr(inner, "__code__", None), CodeType):
            return code
    return None


def _names_in(value: Any) -> Iterator[str]:
    code = value if isinstance(value, CodeType) else _code_of(value)
    if code is not None:
        yield from code.co_names
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                yield from _names_in(inner)
