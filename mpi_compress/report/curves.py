"""The curves of a job's page: one column against each of those that grow, rows thinned, as JSON for the plotting script."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.evidence.lines import ended, lines, shown
from mpi_compress.figures.axes import scales
from mpi_compress.figures.curves import ceiling, up_to
from mpi_compress.figures.style import looks
from mpi_compress.job.tables import FigureTable
from mpi_compress.report.needed import measure
from mpi_compress.results.columns import column_of
from mpi_compress.results.reader import Run
from mpi_compress.results.targets import grows
from mpi_compress.results.units import COSTS, charged, model_of, unit_of

_XS = ("wire_bits_up", "wire_bits", "round", "cost_up", "paper_bits_up", "model_seconds", "seconds")
_PARTS = 48  # of a run; each keeps two rows


def curves(runs: Sequence[Run], figure: FigureTable) -> dict[str, Any] | None:
    """A line for each method, over its seeds the median: its x in each column that all runs have, first what methods pay, and its y
    there, which is that of the first x where it is not said; None where nothing can be drawn. Costs that several models count are
    on no axis. Of a figure of other than rows it is the loss against bits."""
    y = next((name for name in (*figure.ys, "loss") if _has(runs, name)), "")
    xs = [x for x in dict.fromkeys((measure(runs, figure), figure.x, *_XS)) if grows(x) and _has(runs, x)]
    xs = [x for x in xs if x not in COSTS or len({*map(model_of, runs)}) == 1]
    if not y or not xs:
        return None
    along = figure.xscale if grows(figure.x) else None
    asked = figure if figure.x == xs[0] and y in figure.y else FigureTable(xs[0], y, xscale=along)
    (xscale, scale), runs, found = scales(asked), ended(runs), []
    highest = ceiling(runs, replace(asked, y=y))
    by_line = [*zip(*(lines(runs, x, y) for x in xs), strict=True)]
    look_of = looks((first.label for first, *_ in by_line), figure.methods)
    for each in by_line:
        heights, look = [up_to(line, highest).y for line in each], look_of[each[0].label]
        if shown(heights[0], heights[0], "linear", scale).any():
            keep = [thinned(values) for values in heights]
            columns = {x: _short(line.x[rows]) for x, line, rows in zip(xs, each, keep, strict=True)}
            own = {x: _short(values[rows]) for x, values, rows in zip(xs, heights, keep, strict=True)}
            others = {x: values for x, values in own.items() if values != own[xs[0]]}
            tells = {"label": each[0].entry, "hue": look.hue, "tone": look.tone, "dash": look.dash}
            found.append({**tells, "y": {xs[0]: own[xs[0]], **others}, "x": columns})
    labels = {x: _label(x, runs) for x in xs}
    return {"y": _label(y, runs), "labels": labels, "xscale": xscale, "yscale": scale, "lines": found} if found else None


def _has(runs: Sequence[Run], column: str) -> bool:
    """True if each run has a number of this column in each row."""
    return all(run.has(column) and run.column(column).shape == run.column("round").shape for run in runs)


def _label(column: str, runs: Sequence[Run]) -> str:
    unit = unit_of(column, runs)
    return column_of(column).whole_label + charged(column, runs) + f" [{unit}]" * bool(unit)


def thinned(values: NDArray[np.float64]) -> NDArray[np.intp]:
    """The rows that a line needs: the first and the last, and the least and the greatest of each part of the rows. Parts are even
    in rows, and again in the logarithm of rows."""
    n, known = values.size, np.isfinite(values)
    low, high = np.where(known, values, np.inf), np.where(known, values, -np.inf)
    edges = np.unique(np.concatenate([np.linspace(0, n, _PARTS + 1), np.geomspace(1, n, _PARTS + 1)]).astype(np.intp))
    kept = [0, n - 1]
    for start, stop in pairwise(edges):
        kept += [start + np.argmin(low[start:stop]), start + np.argmax(high[start:stop])]
    return np.unique(kept)


def _short(values: NDArray[Any]) -> list[float | int | None]:
    """Numbers for JSON: to six digits, whole ones exactly, and None for what is not finite."""
    return [
        None if not math.isfinite(v) else int(v) if v == int(v) and abs(v) < 2**53 else float(f"{v:.6g}")
        for v in map(float, values)
    ]
