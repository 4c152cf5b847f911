"""Values and tables from Python as TOML would give them; what TOML cannot hold is refused, with its key."""

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from mpi_compress.core.errors import UserError


def as_toml(value: Any, key: str = "") -> Any:
    """The value with NumPy's numbers and arrays, tuples and paths as TOML has them, in new tables and lists.

    Raises:
        UserError: something else is in it; it names the dotted key.
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise UserError(f"{key + ': ' if key else ''}{name!r} is no key; keys are text")
        return {str(name): as_toml(each, f"{key}.{name}" if key else name) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_toml(each, key) for each in value]
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, bool | int | float | str):
        return value
    hint = "; leave the key out" if value is None else ""
    raise UserError(f"{key}: {value!r:.80} was given; a job holds text, numbers, true and false, lists and tables{hint}")


def named_tables(given: Mapping[str, Any], name: str | None) -> tuple[dict[str, Any], str]:
    """A job's tables from a dict, and the job's name.

    The name is `name`, else the dict's own key `name`, else a short form of the title.

    Raises:
        UserError: a value that a job cannot hold, or a name that is no folder's.
    """
    tables = as_toml(given)
    own = tables.pop("name", None)
    chosen = own if name is None else name
    if chosen is None:
        return tables, _slug(tables.get("title")) or "job"
    if not (isinstance(chosen, str) and chosen.isprintable() and _is_folder(PurePath(chosen))):
        raise UserError(f'name: {chosen!r} was given; it should name a folder below the results, such as "sweep" or "sweep/steps"')
    return tables, PurePath(chosen).as_posix()


def _is_folder(path: PurePath) -> bool:
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def _slug(title: Any) -> str:
    """A title in small letters, with hyphens."""
    return re.sub(r"\W+", "-", title.lower()).strip("-")[:60] if isinstance(title, str) else ""
