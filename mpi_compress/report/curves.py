"""The curves of a job's page: one column against each of those that grow, rows thinned, as JSON for the plotting script."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.evidence.lines import by_seed, ended, lines
from mpi_compress.figures.axes import scales
from mpi_compress.figures.curves import ceiling, up_to
from mpi_compress.figures.style import looks
from mpi_compress.job.tables import FigureTable
from mpi_compress.report.needed import measure
from mpi_compress.results.reader import Run
from mpi_compress.results.targets import grows
from mpi_compress.results.units import COSTS, label_of, model_of, unit_of

_XS = ("wire_bits_up", "wire_bits", "round", "cost_up", "paper_bits_up", "model_seconds", "seconds")
_PARTS = 48  # of a run; each keeps two rows


def curves(runs: Sequence[Run], figure: FigureTable) -> dict[str, Any] | None:
    """A line for each method, over its seeds the median: its x in each column that all runs have, first what methods pay, and its y
    there, which is that of the first x where it is not said; None where nothing can be drawn. Costs that several models count are
    on an axis for each model, with its lines alone. Of a figure of other than rows it is the loss against bits."""
    y = next((name for name in (*figure.ys, "loss") if _has(runs, name)), "")
    xs = [x for x in dict.fromkeys((measure(runs, figure), figure.x, *_XS)) if grows(x) and _has(runs, x)]
    if not y or not xs:
        return None
    along = figure.xscale if grows(figure.x) else None
    asked = figure if figure.x == xs[0] and y in figure.y else FigureTable(xs[0], y, xscale=along)
    (xscale, scale), runs, found = scales(asked), ended(runs), []
    highest = ceiling(runs, replace(asked, y=y))
    models = [*dict.fromkeys(map(model_of, runs))]
    by_line = [*zip(*(lines(runs, x, y) for x in xs), strict=True)]
    look_of = looks((first.label for first, *_ in by_line), figure.methods)
    for each, group in zip(by_line, by_seed(runs), strict=True):
        drawn, look = [up_to(line, highest) for line in each], look_of[each[0].label]
        if np.isfinite(drawn[0].y).any():
            axis_of = [x + _counted(x, model_of(group[0]), models) for x in xs]
            kept = {axis: line.rows(thinned(line.y)) for axis, line in zip(axis_of, drawn, strict=True)}
            first, *others = ((axis, _short(line.y)) for axis, line in kept.items())
            own = dict([first, *(other for other in others if other[1] != first[1])])
            columns = {axis: _short(line.x) for axis, line in kept.items()}
            found.append({"label": each[0].entry, "hue": look.hue, "tone": look.tone, "dash": look.dash, "y": own, "x": columns})
    labels = {x + by: _label(x, runs) + by for x in xs for by in (_counted(x, model, models) for model in models)}
    return {"y": _label(y, runs), "labels": labels, "xscale": xscale, "yscale": scale, "lines": found} if found else None


def _counted(x: str, model: str, models: Sequence[str]) -> str:
    """What tells the axis of a cost model where several ones count a column; "" where it is an axis for all lines."""
    return f", {model}" * (x in COSTS and len(models) > 1)


def _has(runs: Sequence[Run], column: str) -> bool:
    """True if each run has a number of this column in each row."""
    return all(run.has(column) and run.column(column).shape == run.column("round").shape for run in runs)


def _label(column: str, runs: Sequence[Run]) -> str:
    unit = unit_of(column, runs)
    return label_of(column, runs) + f" [{unit}]" * bool(unit)


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
