"""Legends and names that cover no curve: among the curves where they meet none, else below the plot."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.transforms import Bbox, ScaledTranslation

from mpi_compress.evidence.lines import seeds_text
from mpi_compress.figures.curves import INNER
from mpi_compress.figures.words import measuring, width, wrapped
from mpi_compress.results.reader import Run

INSIDE = 4  # entries that may stand among the curves
_PLACES: tuple[Any, ...] = ("upper right", "upper left", "lower left", "lower right", "center right", "center left")
_AROUND = 2.0  # points between a legend and a curve
_SHARES = (0.5, 0.7, 0.3, 0.9, 0.1, 1.0, 0.0)  # of a curve, where its name may stand
_SIDES = ((0, 3), (0, 6), (3, 2), (-3, 2), (0, -3), (3, -2), (-3, -2))  # points from the curve
_BETWEEN = 1.5  # sizes of the font between two columns of entries


def place(legend: Legend) -> bool:
    """Put a legend among the curves of its axes where it meets none; False if there is no such place."""
    ax = legend.axes
    around = _AROUND * figure_of(ax).dpi / 72.0
    for where in _PLACES:
        legend.set_loc(where)
        box = legend.get_window_extent().padded(around)
        if box.height < ax.bbox.height and box.width < ax.bbox.width and not meets(ax, box):
            return True
    return False


def put_under(legend: Legend) -> float:
    """Put a legend under its plot and the name of x; gives its height in inches."""
    ax, figure = legend.axes, figure_of(legend.axes)
    low = min(text.get_window_extent().y0 for text in (ax.xaxis.label, *ax.get_xticklabels()) if text.get_text()) - ax.bbox.y0
    legend.set(loc="upper center", frame_on=False)
    legend.set_bbox_to_anchor((0.5, 0.0), ax.transAxes + ScaledTranslation(0, low / figure.dpi, figure.dpi_scale_trans))
    return float(legend.get_window_extent().height) / figure.dpi


def figure_of(drawn: Axes | Figure) -> Figure:
    """The figure that was drawn, or that an `Axes` is on."""
    figure = drawn.get_figure(root=True)
    assert figure is not None
    return figure


def name_bounds(ax: Axes) -> None:
    """Write the name of each bound beside its curves; the legend has it where a curve has no place for it."""
    for entry in [line for line in ax.lines if np.size(line.get_xdata()) == 0]:
        name = str(entry.get_label())
        lines = [line for line in ax.lines if line.get_label() == f"_{name}"]
        own = {np.round(ax.transData.transform(line.get_xydata())).tobytes(): line for line in lines}
        beside = [_name_beside(ax, line, name) for line in own.values()]
        if beside and all(beside):
            entry.set_label("_named")


def _name_beside(ax: Axes, curve: Line2D, name: str) -> bool:
    """Write a name beside a curve, in its colour, where it covers nothing; False if there is no such place."""
    corners = ax.transData.transform(np.asarray(curve.get_xydata()))
    along = np.cumsum(np.hypot(*np.diff(corners, axis=0, prepend=corners[:1]).T))
    points = np.column_stack([np.interp(np.linspace(0.0, along[-1], 101), along, axis) for axis in corners.T])
    points, size = points[[ax.bbox.contains(*point) for point in points]], float(ax.xaxis.label.get_fontsize()) - 2
    if not len(points):
        return True  # nothing is seen of it
    shown = wrapped(name, ax.bbox.width / figure_of(ax).dpi / 3, size)
    text = ax.annotate(shown, (0, 0), (0, 0), textcoords="offset points", color=curve.get_color(), fontsize=size)
    for (dx, dy), share in itertools.product(_SIDES, _SHARES):
        text.xy = tuple(ax.transData.inverted().transform(points[int(share * (len(points) - 1))]))
        text.set(position=(dx, dy), ha=("center", "left", "right")[int(np.sign(dx))], va="bottom" if dy > 0 else "top")
        box = text.get_window_extent().padded(1)
        if all(ax.bbox.contains(*corner) for corner in (box.min, box.max)) and not meets(ax, box, text):
            return True
    text.remove()
    return False


def meets(ax: Axes, box: Bbox, but: Text | None = None) -> bool:
    """True if a curve, a band, a point or a text of the axes, `but` one, is in a box of the screen."""
    if any(text.get_window_extent().overlaps(box) for text in ax.texts if text is not but):
        return True
    drawn: list[tuple[Path, bool]] = [(line.get_transform().transform_path(line.get_path()), False) for line in ax.lines]
    for each in ax.collections:
        if isinstance(each, PathCollection):  # points
            if _any_in(each.get_offset_transform().transform(np.asarray(each.get_offsets())), box):
                return True
        else:
            filled = bool(np.size(each.get_facecolor()))
            drawn += [(each.get_transform().transform_path(path), filled) for path in each.get_paths()]
    drawn += [(patch.get_transform().transform_path(patch.get_path()), True) for patch in ax.patches]
    return any(path.intersects_bbox(box, filled) or _any_in(path.vertices, box) for path, filled in drawn if np.size(path.vertices))


def _any_in(points: Any, box: Bbox) -> bool:
    return bool(np.any((box.x0 < points[:, 0]) & (points[:, 0] < box.x1) & (box.y0 < points[:, 1]) & (points[:, 1] < box.y1)))


def put_below(figure: Figure, entries: Mapping[str, Any], title: str | None) -> float:
    """Put a legend of entries and their handles below all plots of a figure; gives its height in inches."""
    size = mpl.rcParams["legend.fontsize"]
    handle = (mpl.rcParams["legend.handlelength"] + mpl.rcParams["legend.handletextpad"]) * size / 72.0
    room = figure.get_figwidth() - 0.15
    names = [wrapped(name, room - handle, size) for name in entries]
    most = max(handle + max(width(line, size) for line in name.splitlines() or [""]) for name in names)
    legend = figure.legend(
        list(entries.values()), names, loc="outside lower center", ncols=_abreast(len(names), most, room, size), frameon=False,
        title=None if title is None else wrapped(title, room, size), columnspacing=_BETWEEN,
    )  # fmt: skip
    with measuring():
        return float(legend.get_window_extent().height / figure.dpi)
    return len(names) * 1.5 * size / 72.0


def _abreast(entries: int, widest: float, room: float, size: float) -> int:
    """How many entries fit side by side, in rows that are equally full."""
    gap = _BETWEEN * size / 72.0
    most = max(1, int((room + gap) / (widest + gap)))
    return math.ceil(entries / math.ceil(entries / most))


def handles_of(each: Sequence[Axes]) -> dict[str, Any]:
    """The entries of several axes, each name once."""
    return {name: handle for ax in each for handle, name in zip(*ax.get_legend_handles_labels(), strict=True)}


def heading(runs: Sequence[Run], noisy: bool) -> str | None:
    """The legend's title, which says what lines and bands are where there are several seeds, or noise."""
    share = f"{100 * (INNER[1] - INNER[0]):.0f} % of nearby records"
    if over := seeds_text(runs):
        return f"median and range {over}" + (", and over nearby records if noisy" if noisy else "")
    return f"median and band of {share} if noisy" if noisy else None
