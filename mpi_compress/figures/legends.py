"""Legends that cover no curve: among the curves where they meet none, else below the plot."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.path import Path
from matplotlib.transforms import Bbox

from mpi_compress.evidence.lines import by_seed
from mpi_compress.figures.curves import INNER
from mpi_compress.figures.words import measuring, width, wrapped
from mpi_compress.results.reader import Run

INSIDE = 4  # entries that may stand among the curves
_PLACES: tuple[Any, ...] = ("upper right", "upper left", "lower left", "lower right", "center right", "center left")
_AROUND = 2.0  # points between a legend and a curve
_BETWEEN = 1.5  # sizes of the font between two columns of entries


def narrow(legend: Legend) -> None:
    """Write a legend smaller where it is wider than its plot, so that it covers no tick."""
    excess = legend.get_window_extent().width - legend.axes.bbox.width + 2 * _AROUND * figure_of(legend.axes).dpi / 72.0
    widest = max(text.get_window_extent().width for text in legend.get_texts())
    for text in legend.get_texts() if excess > 0 else ():
        text.set_fontsize(float(text.get_fontsize()) * 0.97 * max(0.3, 1 - excess / widest))


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


def figure_of(drawn: Axes | Figure) -> Figure:
    """The figure that was drawn, or that an `Axes` is on."""
    figure = drawn.get_figure(root=True)
    assert figure is not None
    return figure


def meets(ax: Axes, box: Bbox) -> bool:
    """True if a curve, a band or a point of the axes is in a box of the screen."""
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


def make_room(legend: Legend) -> None:
    """Raise the upper end of the y axis until the legend has room above the curves."""
    ax = legend.axes
    legend.set_loc("upper right")
    around = _AROUND * figure_of(ax).dpi / 72.0
    top = max(0.3, 1.0 - (legend.get_window_extent().height + 3 * around) / ax.bbox.height)
    low, high = ax.get_ylim()
    if ax.get_yscale() == "log":
        ax.set_ylim(low, low * (high / low) ** (1 / top))
    else:
        ax.set_ylim(low, low + (high - low) / top)


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
    seeds = max(map(len, by_seed(runs)))
    share = f"{100 * (INNER[1] - INNER[0]):.0f} % of nearby records"
    if seeds > 1:
        return f"median and range over {seeds} seeds" + (", and over nearby records if noisy" if noisy else "")
    return f"median and band of {share} if noisy" if noisy else None
