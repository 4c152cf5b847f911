"""The curves of one plot: lines in their colours, dashes and markers, bands over seeds, bounds, and running medians of noise.

A band is the range over seeds, or of few points a bar at each, with an arrow up where some seeds never come to a level. What
diverges leaves the plot at a cross on its top edge. All curves are named.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise, starmap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from mpi_compress.core.errors import UserError
from mpi_compress.evidence.levels import nearest_to
from mpi_compress.evidence.lines import POINTS, Line, Namer, last_points, levels, lines, name_of, shown
from mpi_compress.figures.axes import entry, scales, set_limits
from mpi_compress.figures.style import Look
from mpi_compress.job.tables import FigureTable
from mpi_compress.results.columns import column_of, known
from mpi_compress.results.reader import Run, rising
from mpi_compress.results.summary import no_f_star
from mpi_compress.results.targets import Target

_FEW_RECORDS = 30  # of a curve, up to which each is a dot, so that no line between them passes for what was computed
_ROOM = 0.08  # of a logarithmic axis, below one of few points that lies far below the other curves: it has an arrow down
_FLOOR = 1e-34  # a logarithmic axis ends at this share of its greatest value: a hundredth of the square of a float's precision
_CEILING, _LINEAR_CEILING = 10.0, 1.2  # times what the others reach: up to there a curve is drawn that diverges
_ROWS = 150  # fewer are drawn as they are
_TURNS = 0.25  # share of rows at which a curve turns up or down, from which on it is noise
_TRAVEL = 6.0  # heights of the plot that the pen goes up and down
_PLACES = 150  # of faint points along an axis
_WINDOWS = 60  # at most, side by side over the width of a plot


def draw_on(
    ax: Axes, runs: Sequence[Run], drawn: Sequence[Line], figure: FigureTable, look_of: Mapping[str, Look], name: Namer = name_of
) -> bool:
    """Draw lines and their bounds, each name in its look. True if a curve is noise, which is drawn as
    its running median over faint points."""
    xscale, yscale = scales(figure)
    points = figure.at is not None or figure.rows == "last"
    highest = math.inf if points else ceiling(runs, figure)
    lowest = 0.0 if points or yscale != "log" else max(_lowest(drawn), _above_the_end(figure.ylim))
    equal = {line.label for line in drawn if sum(np.array_equal(line.y, other.y) for other in drawn) > 1}  # dashes show both
    each_look = {
        name: look.of_line | ({"linestyle": "-"} if figure.bounds and name not in equal else {}) for name, look in look_of.items()
    }
    labels, noisy = {line.label: entry(line.entry) for line in reversed(drawn)}, False
    for line in drawn:
        look = each_look[line.label] | {"label": labels.pop(line.label, None)}
        if line.x is None:
            _draw_level(ax, line, yscale, look)
            continue
        each = points or len(np.unique(line.x)) <= POINTS
        seen = replace(line, y=np.maximum(line.y, lowest)) if each and lowest else line
        keep = shown(line.x, seen.y, xscale, yscale) | (line.y > highest)
        if line.least is not None:  # a band may go on behind the end of its line
            keep |= np.isnan(line.y) & shown(line.x, line.most, xscale, yscale)
        every = None if each else (0.03 + 0.02 * ([*look_of].index(line.label) % 7), 0.2)
        noisy |= _draw_curve(ax, seen.rows(keep), highest, (xscale, yscale), look, every)
        _point_down(ax, line.rows(seen.y > line.y), lowest, look["color"])
        if figure.at:  # the axis has the values of x, too, at which its level is not reached
            ax.update_datalim([(x, x) for x in line.x], updatey=False)
    _draw_bounds(ax, runs, figure, each_look, name)
    ax.set(xscale=xscale, yscale=yscale)
    if not np.isfinite(most := ax.dataLim.y1):  # as where no run reaches a level
        ax.set(yscale="linear", yticks=[])
    elif yscale == "log" and ax.get_ylim()[0] < (bottom := max(lowest * (lowest / most) ** _ROOM, _FLOOR * most)):
        ax.set_ylim(bottom, 10 * most)
    if any(np.any(line.y > highest) for line in drawn):
        ax.set_ylim(top=highest)
    set_limits(ax, figure)
    return noisy


def up_to(line: Line, highest: float) -> Line:
    """A line up to its first row above `highest`, where it ends at this edge; its band ends there, too."""
    above = line.y > highest
    kept = line.rows(np.cumsum(above) <= above)
    return replace(kept, y=np.minimum(kept.y, highest), most=None if kept.most is None else np.minimum(kept.most, highest))


def _lowest(drawn: Sequence[Line]) -> float:
    """Where curves of few points, such as sending the data, are drawn at least: a tenth of the others' least; 0 without others."""
    others = [line.y[line.y > 0] for line in drawn if line.x is not None and len(np.unique(line.x)) > POINTS]
    return min((float(y.min()) for y in others if y.size), default=0.0) / 10


def _above_the_end(ylim: Sequence[float] | None) -> float:
    """Where such points stand on an axis whose ends the figure states."""
    return ylim[0] * (ylim[1] / ylim[0]) ** _ROOM if ylim and ylim[0] > 0 else 0.0


def _point_down(ax: Axes, below: Line, lowest: float, color: str) -> None:
    """An arrow down for each point of a line that stands higher than it lies, and its value."""
    for x, y in zip(below.x, below.y, strict=True):
        _point(ax, x, lowest, -13, color)
        ax.annotate(f"{y:.1g}", (x, lowest), (7, 0), textcoords="offset points", color=color, size="x-small", va="center")


def _point(ax: Axes, x: float, y: float, points: float, color: str) -> None:
    """An arrow from (x, y), so many points up."""
    ax.annotate("", (x, y), (0, points), textcoords="offset points", arrowprops={"arrowstyle": "<-", "color": color})


def _draw_curve(
    ax: Axes, whole: Line, highest: float, axes: tuple[str, str], look: Mapping[str, Any], every: tuple[float, float] | None
) -> bool:
    """Draw a line, with a cross where it leaves the plot, in its band over seeds, or few points with a bar each. True if it is
    noise: then its rows are faint points behind its running median."""
    line, leaves = up_to(whole, highest), bool(np.any(whole.y > highest))
    smooth = None if every is None or leaves else smoothed(line.rows(np.isfinite(line.y)), *axes)
    drawn = smooth or line
    if smooth is not None:
        rows = _apart(*heights_of(line, *axes))
        ax.scatter(line.x[rows], line.y[rows], s=0.6, color=look["color"], alpha=0.15, linewidths=0, zorder=1.5, rasterized=True)
    elif every is not None and line.x.size <= _FEW_RECORDS:
        ax.scatter(line.x, line.y, s=5, color=look["color"], linewidths=0, zorder=2)
    # a point stands over the lines that cross it, whole at the edge
    alone: dict[str, Any] = {"markersize": 6, "linestyle": "none", "zorder": 3, "clip_on": False} if drawn.x.size == 1 else {}
    ax.plot(drawn.x, drawn.y, **{**look, **alone}, markevery=every)
    if leaves:
        ax.scatter(line.x[-1:], line.y[-1:], marker="x", s=22, linewidths=1.2, color=look["color"], zorder=4, clip_on=False)
    if drawn.has_band and every is None:
        is_open = np.isinf(drawn.most)  # where some seeds do not come to a level
        ax.vlines(drawn.x, drawn.least, np.where(is_open, drawn.y, drawn.most), color=look["color"], alpha=0.4, linewidth=2.5)
        for x, y in zip(drawn.x[is_open], drawn.y[is_open], strict=True):
            ax.margins(y=1.5 * _ROOM)
            _point(ax, x, y, 13, look["color"])
    elif drawn.has_band:
        ax.fill_between(drawn.x, drawn.least, drawn.most, color=look["color"], alpha=0.2, linewidth=0)
    return smooth is not None


def _draw_bounds(ax: Axes, runs: Sequence[Run], figure: FigureTable, looks_of: Mapping[str, Any], name: Namer) -> None:
    """Draw each bound dashed, with an entry for the legend."""
    xscale, yscale = scales(figure)
    for number, bound in enumerate(figure.bounds):
        dashes, text = (0, (4 + 2 * number, 2)), column_of(bound).label
        common, having = column_of(bound).common, [r for r in runs if r.has(bound)]
        if common:
            having = sorted(having, key=lambda r: float(np.nanmax(r.column(figure.x), initial=0.0)))[-1:]
        for line in _taker(figure, name)(having, figure.x, bound):
            if line.x is not None:
                drawn = line.rows(shown(line.x, line.y, xscale, yscale))
                own = next(n for n in looks_of if n == line.label or n.startswith(f"{line.label}: "))
                color, single = "0.4" if common else looks_of[own]["color"], "_" if drawn.y.size == 1 else None
                ax.plot(drawn.x, drawn.y, color=color, ls=dashes, lw=0.9, marker=single)
        ax.plot([], [], color="0.4", ls=dashes, lw=0.9, label=text)


def lines_of(runs: Sequence[Run], figure: FigureTable, name: Namer = name_of) -> list[Line]:
    """The lines of one plot, each with the `name` of its first run."""
    over_budgets = [name for name in (figure.x, *figure.ys) if column_of(name).since == "curves"]
    if over_budgets and not figure.at and (others := [name for name in (figure.x, *figure.ys) if name not in over_budgets]):
        would_do = "--y loss" if others == [figure.x] else "--x round"
        raise UserError(f"{over_budgets[0]} has a value for each budget T, and {others[0]} one for each record: add {would_do}")
    if figure.at and not known(figure.x) and not any(r.has(figure.x) for r in runs):
        runs[0].column(figure.x)  # raises, since there is none
    if figure.bounds and not any(r.has(name) for name in figure.bounds for r in runs):
        why = [r.attrs["lyapunov_unknown"] for r in runs if "lyapunov_unknown" in r.attrs and "lyapunov_bound" in figure.bounds]
        raise UserError(": ".join([f"bounds: no run has a column {' or '.join(figure.bounds)}", *why[:1]]))
    return [
        line if len(figure.ys) == 1 else replace(line, label=f"{line.label}: {column_of(column).label}")
        for column in figure.ys
        for line in _taker(figure, name)(runs, figure.x, column)
    ]


def why_nothing(drawn: Sequence[Line], figure: FigureTable, runs: Sequence[Run]) -> str:
    """Why none of these lines can be drawn, or only levels, which have no x to stand beside; "" if one can."""
    xscale, yscale = scales(figure)
    over_x = [line for line in drawn if line.x is not None]
    if any(shown(line.x, line.y, xscale, yscale).any() for line in over_x):
        return ""
    if not figure.at:
        why = f"; {drawn[0].note}" * bool(drawn[0].note)
        why += f"; {no_f_star(runs[0])}" * ("suboptimality" in (figure.x, figure.y) and math.isnan(runs[0].attrs["f_star"]))
        return f"no record has {figure.x} and {figure.y} that {xscale} and {yscale} axes can show{why}"
    if not over_x and any(np.isfinite(line.y).any() for line in drawn):
        return f"no run has a single {figure.x}; x should be a key whose values differ, such as up.compressor.k in [grid]"
    ((column, level),) = figure.at.items()
    nearest = nearest_to(Target.of(column, level, rising(runs)), [run for run in runs if run.has(figure.x) or not over_x])
    return f"no run{f' at any {figure.x}' * bool(over_x)} comes down to {column} = {level:g}{nearest}"


def _draw_level(ax: Axes, line: Line, yscale: str, look: Mapping[str, Any]) -> None:
    if shown(line.y[:1], line.y[:1], "linear", yscale)[0]:
        ax.axhline(line.y[0], **{**look, "marker": None})
        if line.has_band and np.isfinite(line.most[0]):
            ax.axhspan(line.least[0], line.most[0], color=look["color"], alpha=0.2, linewidth=0)
    else:
        ax.plot([], [], **look)  # its entry says why


def ceiling(runs: Sequence[Run], figure: FigureTable) -> float:
    """The y up to which the curves of a figure are drawn where a run diverges, so that the others can be seen; else infinite."""
    room = _CEILING if scales(figure)[1] == "log" else _LINEAR_CEILING
    diverge = {run.label for run in runs if run.status == "diverged"}
    if not diverge:
        return math.inf
    names = [name for name in figure.ys if name in ("loss", "test_loss") or column_of(name).falls]
    tops = [run.column(name)[: 1 if run.label in diverge else None] for name in names for run in runs if run.has(name)]
    reached = np.concatenate([np.zeros(1), *tops])
    return room * float(np.max(reached, where=np.isfinite(reached), initial=0.0)) or math.inf


def _taker(figure: FigureTable, name: Namer) -> Any:
    if figure.at:
        return partial(levels, at=figure.at)
    if figure.rows == "last":
        return last_points
    return partial(lines, name=name)


def smoothed(line: Line, xscale: str, yscale: str) -> Line | None:
    """The running median of a curve that is noise; None for one that is not. It begins at the curve's first row. Windows are even
    along the axis as it is drawn. Over several seeds its band goes from the median of their least to the median of their most."""
    along, height = heights_of(line, xscale, yscale)
    if line.is_exact or line.y.size < _ROWS or np.any(np.diff(along) < 0) or not is_noise(height):
        return None
    cuts = np.searchsorted(along, np.linspace(along[0], along[-1], _WINDOWS)[1:-1])
    windows = [slice(0, 1), *starmap(slice, pairwise(np.unique([1, *cuts, along.size])))]
    return line.each(lambda values: np.array([np.median(values[own]) for own in windows]))


def heights_of(line: Line, xscale: str, yscale: str) -> list[NDArray]:
    """A line's x and y, as their axes draw them."""
    return [np.log10(v) if scale == "log" else v.astype(float) for v, scale in ((line.x, xscale), (line.y, yscale))]


def _apart(*axes: NDArray) -> NDArray[np.intp]:
    """The rows to draw of those that would lie on each other: the first one at each place."""
    places = [np.round(_PLACES * (v - v.min()) / (np.ptp(v) or 1.0)) for v in axes]
    return np.unique(places, axis=1, return_index=True)[1]


def is_noise(height: NDArray) -> bool:
    """True if a curve, in heights as its axis draws them, turns at every few rows and travels many times its own range."""
    steps = np.diff(height)
    low, high = np.quantile(height, [0.01, 0.99])
    turns = np.mean(np.sign(steps[1:]) != np.sign(steps[:-1]))
    return bool(turns > _TURNS and np.abs(steps).sum() > _TRAVEL * (high - low) > 0)
