"""Tables as TOML gives them, or Python: dotted keys, lists of tables, unknown keys, and what TOML cannot hold."""

import copy
import itertools
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import PurePath
from typing import Any

import numpy as np

from mpi_compress.core.errors import UserError, nearest
from mpi_compress.core.removed import refuse_key
from mpi_compress.job.tables import OF_A_RUN, Tables
from mpi_compress.results.files import names_folder

_MOST_POINTS = 100_000  # of a grid
_DEEPEST = 50
_CHAIN = re.compile(rf"(?:[\w\"'-]{{1,99}}\s*\.\s*){{{_DEEPEST}}}")  # the time that Python's parser takes grows with its square


def tables_in(text: str) -> dict[str, Any]:
    """The tables of a TOML text; ValueError if it is none, or has what no job means, hundreds of levels or digits."""
    if _CHAIN.search(text):
        raise ValueError(f"a key has more than {_DEEPEST} names")
    try:
        tables = tomllib.loads(text)
    except RecursionError:
        raise ValueError("it has too many levels, one inside the other") from None
    inner: list[Any] = [tables]
    while inner:
        value = inner.pop()
        if isinstance(value, int) and abs(value) >= 2**64:
            raise ValueError(f"{str(value)[:20]}… is a whole number of more than 64 bits")
        inner += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return tables


def put(run: dict[str, Any], key: str, value: Any) -> None:
    """Set a dotted key, in copies of the tables on its way, and make those that it lacks; UserError if a run has no such table, or
    something else stands there."""
    *tables, last = key.split(".")
    head = (tables or [last])[0]
    if head == "grid":
        would_do = f"choose runs by --only or --index{', or set seed itself' * (key == 'grid.seed')}"
        raise UserError(f"{key}: [grid] says which runs a job has, and is not set in a run; edit the job, or {would_do}")
    if why := no_key_of_a_run(head):
        raise UserError(f"{key}: {why}")
    for name in tables:
        inner = run.get(name, {})
        if isinstance(inner, str):  # the short form of a part, codec = "fixed"
            inner = {"name": inner}
        if not isinstance(inner, dict):
            raise UserError(f"{key}: {name} is {type(inner).__name__ if isinstance(inner, list) else repr(inner)} and no table")
        run[name] = run = {**inner}
    run[last] = value


def with_values(run: Tables, values: Tables) -> dict[str, Any]:
    """A copy of a run's tables with other values by dotted key."""
    changed = dict(run)
    for key, value in values.items():
        put(changed, key, value)
    return changed


def put_part(run: dict[str, Any], key: str, value: Any) -> None:
    """`put`; but of a table with a `name`, each value for itself if a table of that name, or without one, stands there."""
    if isinstance(value, Mapping) and name_of(value_at(run, key)) in (None, name_of(value)):
        for inner, each in leaves(value, f"{key}."):
            put(run, inner, each)
    else:
        put(run, key, copy.deepcopy(value))


def name_of(value: Any) -> Any:
    """What names a part, or data; None for any other table."""
    return next((value[k] for k in ("name", "generator", "path") if k in value), None) if isinstance(value, Mapping) else value


def value_at(run: Any, key: str) -> Any:
    """What stands at a dotted key, None if it is not there; the short form of a part, codec = "fixed", is its name."""
    for name in key.split("."):
        run = {"name": run} if isinstance(run, str) else run
        if not isinstance(run, Mapping) or name not in run:
            return None
        run = run[name]
    return run


def leaves(table: Tables, prefix: str = "", parts: bool = False) -> Iterator[tuple[str, Any]]:
    """Values by dotted key; with `parts`, a table of a part, or of data, is one value."""
    for key, value in table.items():
        if isinstance(value, Mapping) and not (parts and name_of(value)):
            yield from leaves(value, f"{prefix}{key}.", parts)
        else:
            yield prefix + key, value


def list_of_tables(tables: Tables, key: str, within: str = "") -> list[dict[str, Any]]:
    """The tables headed [[key]], an empty list if there are none; UserError if what stands there is no list of tables."""
    value = tables.get(key, [])
    if not isinstance(value, list) or not all(isinstance(v, dict) for v in value):
        raise UserError(f"{within}{key}: should be tables, each headed [[{within}{key}]]")
    return value


def refuse_unknown(table: Tables, known: Sequence[str], where: str) -> None:
    """Raise UserError where a table has a key that is not among the known ones."""
    for key in table:
        if key not in known:
            raise refuse_key(where, key, known)


def plain(value: Any) -> str:
    """A value as labels show it."""
    return value if isinstance(value, str) and value.isprintable() else json.dumps(value)


def text_of(value: Any) -> str:
    """Distinguishes values of a job."""
    return json.dumps(value, sort_keys=True, default=str)


def labelled(label: str, point: Tables) -> str:
    """The label of a run at a point of its grid; a target is in it as jobs write it, "suboptimality = 0.01"."""
    values = leaves(point, parts=True)
    return ", ".join([label, *(f"{key.split('.')[-1]} = {plain(value)}" for key, value in values if key != "seed")])


def refuse_labelled(label: str, point: Tables, values: Tables) -> None:
    """UserError for a value set from outside, in whose place the label of a grid's point shows another."""
    shown = with_values({}, {key: value for key, value in point.items() if key != "seed"}) if values else {}
    if own := [key for key in values if value_at(shown, key) is not None]:
        raise UserError(f'{own[0]}: labels show this axis of [grid], "{label}"; choose among its values by --only, or edit the job')


def grid_of(table: Tables, where: str) -> Tables:
    """[grid] of a job or of a run; UserError, with its place, if it is no table."""
    grid = table.get("grid", {})
    if not isinstance(grid, Mapping):
        raise UserError(f"{where}grid: {grid!r} was given; it should be a table of lists, such as {{ seed = [0, 1] }}")
    return grid


def points_of(table: Tables) -> list[dict[str, Any]]:
    """All points of [grid]: dotted keys, each with a list of values."""
    axes = dict(leaves(table))
    for key, values in axes.items():
        if not isinstance(values, list) or not values:
            raise UserError(f"grid.{key}: {values!r} was given; it should be a list of values, at least one")
        if why := no_key_of_a_run(key):
            raise UserError(f"grid: {why}")
    if (points := prod(map(len, axes.values()))) > _MOST_POINTS:
        raise UserError(f"grid: {points} runs are too many for one job; up to {_MOST_POINTS} can be run")
    return combined(axes)


def combined(axes: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """All combinations of a value of each list."""
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def no_key_of_a_run(key: str, but: str = "") -> str:
    """Why a dotted key is that of no table of a run, or of one that cannot be set here; "" if it is."""
    head = key.partition(".")[0]
    return "" if head in OF_A_RUN and head != but else nearest(head, OF_A_RUN, "table")


def as_toml(value: Any, key: str = "") -> Any:
    """The value as TOML has it, also NumPy's numbers and arrays, tuples and paths; UserError with the dotted key of what TOML
    cannot hold."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise UserError(f"{key + ': ' if key else ''}{name!r} is no key; keys are text")
        return {name: as_toml(each, f"{key}.{name}" if key else name) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_toml(each, key) for each in value]
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, bool | int | float | str):
        return value
    hint = "; leave the key out" if value is None else ""
    raise UserError(f"{key}: {value!r:.80} was given; a job holds text, numbers, true and false, lists and tables{hint}")


def named_tables(given: Tables, name: str | None) -> tuple[dict[str, Any], str]:
    """A job's tables from a dict, and its name: `name`, else the dict's own key `name`, else a short form of the title. UserError
    for a value that a job cannot hold, or a name that is no folder's."""
    tables = as_toml(given)
    own = tables.pop("name", None)
    chosen = own if name is None else name
    if chosen is None:
        title = tables.get("title") if isinstance(tables.get("title"), str) else ""
        return tables, re.sub(r"\W+", "-", title.lower()).strip("-")[:60] or "job"
    if not (isinstance(chosen, str) and chosen.isprintable() and names_folder(chosen)):
        raise UserError(f'name: {chosen!r} was given; it should name a folder below the results, such as "sweep" or "sweep/steps"')
    return tables, PurePath(chosen).as_posix()
