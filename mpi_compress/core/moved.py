"""Where a name of this package is now, for plugins that were written for an earlier version."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
_NAME = re.compile(r"cannot import name '(\w+)'|module '[\w.]+' has no attribute '(\w+)'")


def moved(error: BaseException, source: str) -> str:
    """The rest of an error line: where what a plugin wants of this package is now; "" if nothing is known of it.

    Args:
        source: the line of the plugin.
    """
    wanted = next((found for found in _NAME.findall(str(error)) if found), ())
    names = [name for name in wanted if name]
    if isinstance(error, ModuleNotFoundError):
        module = (error.name or "").rpartition(".")[2]
        names = [*re.findall(r"\w+", source.partition(" import ")[2].partition(" as ")[0]), module]
    if not (isinstance(error, ImportError) and (error.name or "").startswith(PACKAGE.name)) and PACKAGE.name not in str(error):
        return ""
    now = list(dict.fromkeys(place for name in names if (place := _place(name))))
    return f"; now it is {' and '.join(now)}" if now else ""


def _place(name: str) -> str:
    """The dotted names of a class, a function, a constant or a module; "" if there is none of that name, or more than three."""
    if name in sys.modules[PACKAGE.name].__all__:
        return f"{PACKAGE.name}.{name}"
    found = list(_definitions(name))
    return " or ".join(found) if len(found) <= 3 else ""


def _definitions(name: str) -> Iterator[str]:
    defined = re.compile(rf"^(?:class|def) {name}\b|^{name}\b.* = ", re.MULTILINE)
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if module.rpartition(".")[2] == name:
            yield module
        elif defined.search(file.read_text(encoding="utf-8")):
            yield f"{module}.{name}"
