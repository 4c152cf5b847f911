"""What of runs is drawn: lines, taken from results alone; runs that differ in their seed alone are one of them, with a band."""

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.results import Run


@dataclass(frozen=True)
class Line:
    """A line of a figure: a run, several seeds of one, or points that each stand for a run."""

    label: str
    x: NDArray[Any] | None  # None: at every x
    y: NDArray[Any]  # over several seeds the median, as x is
    least: NDArray[Any] | None = None  # over the seeds
    most: NDArray[Any] | None = None


def named(run: Run) -> str:
    """A run's label, and what was tuned for it."""
    return f"{run.label}, {tuned_text(run)}" if run.tuned else run.label


def tuned_text(run: Run) -> str:
    """What [tune] found for a run, such as "a = 0.5"; "" where nothing was tuned."""
    return f"{run.tuned['parameter'].split('.')[-1]} = {run.tuned['value']}" if run.tuned else ""


def lines(runs: Sequence[Run], x: str, y: str, name: Callable[[Run], str] = named) -> list[Line]:
    """One for each run, but for seeds."""
    return [_line(each, x, y, name(each[0])) for each in by_seed(runs)]


def by_seed(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs in groups, each of those that differ in their seed alone."""
    groups: dict[Any, list[Run]] = {}
    for run in runs:
        groups.setdefault(_but_for_the_seed(run), []).append(run)
    return list(groups.values())


def _but_for_the_seed(run: Run) -> Any:
    if "job" not in run.attrs:
        return id(run)
    tables = tomllib.loads(run.attrs["job"])
    tables.pop("seed", None)
    return json.dumps([run.label, tables], sort_keys=True, default=str)


def _line(runs: Sequence[Run], x: str, y: str, name: str) -> Line:
    if len(runs) == 1:
        return Line(name, runs[0].column(x), runs[0].column(y))
    rounds = np.unique(np.concatenate([run.column("round") for run in runs]))
    xs, ys = (np.full((len(runs), rounds.size), np.nan) for _ in range(2))
    for i, run in enumerate(runs):
        at = np.searchsorted(rounds, run.column("round"))
        xs[i, at], ys[i, at] = run.column(x), run.column(y)
    kept = np.isfinite(xs).any(axis=0) & np.isfinite(ys).any(axis=0)
    xs, ys = xs[:, kept], ys[:, kept]
    return Line(name, np.nanmedian(xs, axis=0), np.nanmedian(ys, axis=0), np.nanmin(ys, axis=0), np.nanmax(ys, axis=0))


def last_points(runs: Sequence[Run], x: str, y: str) -> list[Line]:
    """One line of last rows for the runs of a grid."""
    points: dict[str, list[tuple[float, float]]] = {}
    for r in runs:
        points.setdefault(stem(r.label), []).append((float(r.column(x)[-1]), float(r.column(y)[-1])))
    return [Line(label, *np.array(sorted(each)).T) for label, each in points.items()]


def levels(runs: Sequence[Run], x: str, y: str, at: Mapping[str, float]) -> list[Line]:
    """What each run took to bring the column of `at` down to its level, at its own x."""
    ((where, level),) = at.items()
    found: dict[str, list[tuple[float, float]]] = {}
    for r in runs:
        reached = np.flatnonzero(r.column(where) <= level)
        needed = float(r.column(y)[reached[0]]) if reached.size else np.nan
        xs = r.column(x)[1:] if r.has(x) else np.empty(0)
        constant = xs.size > 0 and np.all(xs == xs[0])
        found.setdefault(stem(r.label) if constant else r.label, []).append((float(xs[0]) if constant else np.nan, needed))
    drawn: list[Line] = []
    for label, points in found.items():
        own, ys = np.array(sorted(points)).T
        drawn.append(Line(label, None if np.isnan(own).any() else own, ys))
    return drawn


def stem(label: str) -> str:
    """The label that the runs of a grid share, which differ in what stands behind a comma and an equals sign."""
    return re.sub(r", \w+ = .*", "", label)


def without_common(labels: Sequence[str]) -> dict[str, str]:
    """Labels of a grid's runs without the values, such as ", c2 = 0.25", that all of them share."""
    values = [re.findall(r", \w+ = [^,]*", label) for label in labels]
    common = [value for value in values[0] if all(value in each for each in values)] if values else []
    short = {}
    for label in labels:
        left = label
        for value in common:
            left = left.replace(value, "", 1)
        short[label] = left
    return short


def shown(xs: NDArray, ys: NDArray, xscale: str, yscale: str) -> NDArray[np.bool_]:
    """Which points can be drawn: finite, and above 0 on a logarithmic axis."""
    keep = np.isfinite(xs) & np.isfinite(ys)
    if xscale == "log":
        keep &= xs > 0
    if yscale == "log":
        keep &= ys > 0
    return keep
